#include "ca_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "session.h"
#include "trust.h"

#define ANSWER_MAX 16384

static enum err
get(struct trust *out, const char *url, struct why *why)
{
	char path[ADDRESS_MAX + 16];
	struct transport_answer answer = {.retry_after_s = -1};
	struct transport *t;
	const struct transport_options options = {.insecure = true};
	const struct transport_request request = {
	    .method = "GET", .url = path, .answer_max = ANSWER_MAX};
	enum err e = transport_new(&t, &options, why);

	if (e)
		return e;
	snprintf(path, sizeof(path), "%s/v1/ca", url);
	e = transport_do(t, &request, &answer, why);
	transport_free(t);
	if (!e)
		e = session_problem(&answer, NULL, why);
	if (!e)
		e = trust_parse(out, buf_str(&answer.body), why);
	transport_answer_deinit(&answer);
	return e;
}

enum err
ca_fetch(struct x509_cert *out, char *pem, const char *url, const uint8_t fingerprint[HASH_LEN],
    struct why *why)
{
	uint8_t hash[HASH_LEN];
	size_t room = CA_FETCH_PEM_MAX;
	struct trust *trust = malloc(sizeof(*trust));
	enum err e = trust ? get(trust, url, why) : err_set(why, ERR_NOMEM, "no memory");
	bool found = false;

	for (size_t i = 0; !e && !found && i < trust->count; i++) {
		hash_sha256(hash, trust->ca[i].der, trust->ca[i].len);
		found = hash_equal(hash, fingerprint, HASH_LEN);
		if (found)
			*out = trust->ca[i];
	}
	free(trust);
	if (e)
		return e;
	if (!found)
		return err_set(why, ERR_DENIED,
		    "the CA of %s is not the one of this token: wrong coordinator, or someone in "
		    "between",
		    url);
	return x509_to_pem(pem, &room, out);
}
