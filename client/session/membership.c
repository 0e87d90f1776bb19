#include "membership.h"

#include <stdio.h>

#include "credentials.h"
#include "hash.h"
#include "session.h"
#include "transport.h"

#define PATIENCE_S 20.0

/* One GET; type: of the problem it was answered with. */
static enum err
ask(const struct transport_options *options, const char *base, const char *path,
    enum problem_type *type, enum transport_distrust *distrust)
{
	char url[ADDRESS_MAX + 32];
	struct transport_answer answer = {.retry_after_s = -1};
	struct transport *t;
	struct why why = {""};

	snprintf(url, sizeof(url), "%s%s", base, path);
	const struct transport_request request = {
	    .method = "GET", .url = url, .idle_s = PATIENCE_S};
	*type = PROBLEM_NONE;
	*distrust = TRANSPORT_TRUSTED;
	enum err e = transport_new(&t, options, &why);
	if (e)
		return e;
	e = transport_do(t, &request, &answer, &why);
	*distrust = answer.distrust;
	if (!e)
		(void)!session_problem(&answer, type, &why);
	transport_answer_deinit(&answer);
	transport_free(t);
	return e;
}

/* Whose CA was replaced is refused in the handshake; that others are served tells it from a broken link. */
static bool
is_refused(const struct credentials *held, const char *url, struct transport_options options)
{
	enum transport_distrust distrust;
	enum problem_type type;
	char key[KEY_PEM_MAX] = "";

	enum err e = key_pem(held->key, key);
	if (e)
		return false;
	options.ca_pem = held->ca_pem;
	options.cert_pem = held->cert_pem;
	options.key_pem = key;
	e = ask(&options, url, "/v1/status", &type, &distrust);
	hash_wipe(key, sizeof(key));
	if (!e || distrust)
		return type == PROBLEM_UNKNOWN_DEVICE || type == PROBLEM_RETIRED_CA ||
		    distrust == TRANSPORT_ISSUER;
	options.cert_pem = options.key_pem = NULL;
	return !ask(&options, url, "/healthz", &type, &distrust) && !type;
}

bool
membership_lost(const char *home, const char *url, bool (*cancel)(void *context), void *context)
{
	const struct transport_options options = {.cancel = cancel, .context = context};
	struct credentials held;

	if (credentials_load(&held, home, NULL))
		return false;
	bool lost = is_refused(&held, url, options);
	credentials_deinit(&held);
	return lost;
}
