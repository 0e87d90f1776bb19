#include "ca_fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "session.h"

#define ANSWER_MAX 16384

static enum err
get(struct trust *out, const struct ca_fetch_from *from, struct why *why)
{
	char path[ADDRESS_MAX + 16];
	struct transport_answer answer = {.retry_after_s = -1};
	struct transport *t;
	const struct transport_options options = {
	    .insecure = true, .cancel = from->cancel, .context = from->context};
	const struct transport_request request = {
	    .method = "GET", .url = path, .answer_max = ANSWER_MAX};
	enum err e = transport_new(&t, &options, why);

	if (e)
		return e;
	snprintf(path, sizeof(path), "%s/v1/ca", from->url);
	e = transport_do(t, &request, &answer, why);
	transport_free(t);
	if (!e)
		e = session_refusal(&answer, NULL, why);
	if (!e)
		e = trust_parse(out, buf_str(&answer.body), why);
	transport_answer_deinit(&answer);
	return e;
}

static bool
is_named(const struct x509_cert *cert, const uint8_t fingerprint[HASH_LEN])
{
	uint8_t hash[HASH_LEN];

	hash_sha256(hash, cert->der, cert->len);
	return hash_equal(hash, fingerprint, HASH_LEN);
}

/* false: the one with the fingerprint is not among them. */
static bool
believe(struct trust *out, const struct trust *offered, const uint8_t fingerprint[HASH_LEN])
{
	out->count = 0;
	for (size_t i = 0; i < offered->count && out->count == 0; i++)
		if (is_named(&offered->ca[i], fingerprint))
			out->ca[out->count++] = offered->ca[i];
	for (size_t i = 0; i < offered->count && out->count > 0; i++)
		if (!is_named(&offered->ca[i], fingerprint) &&
		    x509_verify(&offered->ca[i], &out->ca[0]) == ERR_OK)
			out->ca[out->count++] = offered->ca[i];
	return out->count > 0;
}

static enum err
print(char *pem, const struct trust *trust)
{
	enum err e = ERR_OK;
	size_t used = 0;

	for (size_t i = 0; i < trust->count && !e; i++) {
		size_t room = CA_FETCH_PEM_MAX - used;
		e = x509_to_pem(pem + used, &room, &trust->ca[i]);
		used += room;
	}
	return e;
}

enum err
ca_fetch(struct trust *out, char *pem, const struct ca_fetch_from *from, struct why *why)
{
	struct trust *offered = malloc(sizeof(*offered));
	enum err e = offered ? get(offered, from, why) : err_set(why, ERR_NOMEM, "no memory");

	if (!e && !believe(out, offered, from->fingerprint))
		e = err_set(why, ERR_DENIED,
		    "the CA of %s is not the one of this token: wrong coordinator, or someone in "
		    "between",
		    from->url);
	free(offered);
	return e ? e : print(pem, out);
}
