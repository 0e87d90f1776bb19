#include "join.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ca_fetch.h"
#include "fault.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "home.h"
#include "identity_set.h"
#include "membership.h"
#include "messages.h"
#include "session.h"
#include "transport.h"
#include "trust.h"
#include "x509.h"

#define ANSWER_MAX (64u << 10)

struct joining {
	const struct join_options *options;
	bool
	    again; /* although the home has joined: with its key, and with what it has of addresses */
	const char *name; /* NULL: the host's */
	char url[ADDRESS_MAX];
	char token_text[TOKEN_TEXT_MAX];
	struct token token;
	struct trust trust; /* the CA of the token, and those it vouches for */
	char ca_pem[CA_FETCH_PEM_MAX];
	struct key *key;
};

/* Is this home enrolled with that coordinator already? ERR_NOTFOUND if it has not joined, ERR_EXISTS if it has joined another one
 * (unless the token later proves it the same). */
static enum err
look(struct identity *id, const struct joining *j, struct why *why)
{
	enum err e = identity_load(id, j->options->home, why);

	if (!e && !identity_has_url(id, j->url))
		e = err_set(why, ERR_EXISTS, "%s has joined %s", j->options->home, id->urls[0]);
	return e;
}

static enum err
take_token(struct joining *j, struct why *why)
{
	const char *text = j->options->token;
	size_t len = text ? strlen(text) : 0;

	if (!text)
		return err_set(why, ERR_NOTFOUND, "a token is needed%s",
		    j->again
			? " to join again, for the coordinator refuses this device's certificate"
			: "");
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	if (len == 0 || len >= sizeof(j->token_text))
		return err_set(why, ERR_INVALID, "that is no join token");
	memcpy(j->token_text, text, len);
	j->token_text[len] = '\0';
	if (messages_token_parse(&j->token, j->token_text))
		return err_set(why, ERR_INVALID, "that is no join token");
	return ERR_OK;
}

static bool
fingerprint_among(const struct trust *trust, const struct token *token)
{
	uint8_t hash[HASH_LEN];

	for (size_t i = 0; i < trust->count; i++) {
		hash_sha256(hash, trust->ca[i].der, trust->ca[i].len);
		if (hash_equal(hash, token->ca_hash, HASH_LEN))
			return true;
	}
	return false;
}

/* A home that has joined: the same coordinator under another address is taken into the list. */
static enum err
rejoin(struct joining *j, struct identity *id, struct why *why)
{
	char path[PATH_MAX];
	char *pem = NULL;
	struct trust trust;
	size_t len;
	enum err e = identity_path(path, j->options->home, "ca.pem", why);

	if (!e)
		e = file_read(path, IDENTITY_PEM_MAX, &pem, &len, why);
	if (!e)
		e = trust_parse(&trust, pem, why);
	free(pem);
	if (e)
		return e;
	if (!fingerprint_among(&trust, &j->token))
		return err_set(why, ERR_EXISTS,
		    "%s belongs to another coordinator (%s); use another --home", j->options->home,
		    id->urls[0]);
	if (identity_has_url(id, j->url))
		return ERR_OK;
	e = identity_add_url(id, j->url, why);
	return e ? e : identity_save(id, j->options->home, why);
}

static enum err
exchange(const struct transport_options *options, const struct transport_request *request,
    struct transport_answer *answer, struct why *why)
{
	struct transport *t;
	enum err e = transport_new(&t, options, why);

	*answer = (struct transport_answer){.retry_after_s = -1};
	if (e)
		return e;
	e = transport_do(t, request, answer, why);
	transport_free(t);
	return e ? e : session_refusal(answer, NULL, why);
}

static enum err
need_key(struct joining *j, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, j->options->home, "key.pem", why);

	if (!e)
		e = key_load(&j->key, path, why);
	if (e != ERR_NOTFOUND)
		return e;
	e = key_generate(&j->key, why);
	return e ? e : key_save(j->key, path, why);
}

static enum err
make_request(struct joining *j, struct buf *out, struct why *why)
{
	struct join_request request = {.csr_len = sizeof(request.csr)};
	uint8_t id[HASH_LEN];
	char id_hex[KEY_ID_HEX], host[256] = "device";
	const char *name = j->name;

	key_id(id, key_spki(j->key));
	hex_encode(id_hex, id, sizeof(id));
	if (!name && gethostname(host, sizeof(host) - 1) == 0)
		host[sizeof(host) - 1] = '\0';
	snprintf(request.name, sizeof(request.name), "%.63s", name ? name : host);
	enum err e = x509_csr_make(request.csr, &request.csr_len, j->key, id_hex, why);
	return e ? e : messages_join_encode(out, &request);
}

static enum err
send_request(struct joining *j, const struct buf *body, struct join_answer *out, struct why *why)
{
	char url[ADDRESS_MAX + 16], bearer[TOKEN_TEXT_MAX + 32];
	const char *const headers[] = {bearer, "Content-Type: application/json", NULL};
	struct transport_answer answer;
	const struct transport_options options = {
	    .ca_pem = j->ca_pem, .cancel = j->options->cancel, .context = j->options->context};
	const struct transport_request request = {.method = "POST",
	    .url = url,
	    .headers = headers,
	    .body = body->data,
	    .body_len = body->len,
	    .answer_max = ANSWER_MAX};

	snprintf(url, sizeof(url), "%s/v1/join", j->url);
	snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", j->token_text);
	enum err e = exchange(&options, &request, &answer, why);
	hash_wipe(bearer, sizeof(bearer));
	if (!e)
		e = messages_joined_decode(out, buf_str(&answer.body), answer.body.len, why);
	transport_answer_deinit(&answer);
	return e;
}

/* The certificate must be ours and of the CA that was checked; whatever CA the answer names is not believed. */
static enum err
check_answer(const struct joining *j, const struct join_answer *answer, struct why *why)
{
	struct x509_cert cert;
	struct x509_info info;
	enum err e = x509_from_pem(&cert, answer->certificate, why);

	if (!e)
		e = x509_parse(&info, &cert, why);
	if (e)
		return e;
	if (trust_check(&j->trust, &cert) || memcmp(info.spki, key_spki(j->key), KEY_SPKI_LEN) != 0)
		return err_set(
		    why, ERR_DENIED, "the certificate that came is not for this device's key");
	if (!*answer->signer)
		return ERR_OK;
	e = x509_from_pem(&cert, answer->signer, why);
	if (e)
		return e;
	return trust_check(&j->trust, &cert)
	    ? err_set(why, ERR_DENIED, "the key that signs receipts is not certified by the CA")
	    : ERR_OK;
}

/* An older coordinator does not tell; then nothing may be left of an earlier one. */
static enum err
save_signer(const struct joining *j, const struct join_answer *answer, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, j->options->home, "signer.pem", why);

	if (e)
		return e;
	if (*answer->signer)
		return file_write(path, answer->signer, strlen(answer->signer), 0644, why);
	return unlink(path) == 0 || errno == ENOENT ? ERR_OK : err_errno(why, "remove %s", path);
}

static enum err
save(
    const struct joining *j, const struct join_answer *answer, struct identity *id, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, j->options->home, "ca.pem", why);

	if (!j->again)
		memset(id, 0, sizeof(*id));
	snprintf(id->device, sizeof(id->device), "%s", answer->device);
	snprintf(id->name, sizeof(id->name), "%s", answer->name);
	snprintf(id->role, sizeof(id->role), "%s", answer->role);
	id->renew_after = answer->renew_after;
	if (!e)
		e = file_write(path, j->ca_pem, strlen(j->ca_pem), 0644, why);
	if (!e)
		e = save_signer(j, answer, why);
	if (!e)
		e = identity_path(path, j->options->home, "cert.pem", why);
	if (!e)
		e = file_write(path, answer->certificate, strlen(answer->certificate), 0644, why);
	if (!e)
		e = identity_add_url(id, j->url, why);
	FAULT("client.joined");
	/* Last, for its presence means that joining is complete. */
	return e ? e : identity_save(id, j->options->home, why);
}

static enum err
enrol(struct joining *j, struct identity *out, struct why *why)
{
	const struct ca_fetch_from from = {
	    j->url, j->token.ca_hash, j->options->cancel, j->options->context};
	struct join_answer answer;
	struct buf body;

	buf_init(&body, ANSWER_MAX);
	enum err e = ca_fetch(&j->trust, j->ca_pem, &from, why);
	if (!e)
		e = file_mkdirs(j->options->home, 0700, why);
	if (!e)
		e = need_key(j, why);
	FAULT("client.key");
	if (!e)
		e = make_request(j, &body, why);
	if (!e)
		e = send_request(j, &body, &answer, why);
	if (!e)
		e = check_answer(j, &answer, why);
	if (!e)
		e = save(j, &answer, out, why);
	buf_deinit(&body);
	return e;
}

/* The agent must not read half of what is changed here. */
static enum err
enrol_again(struct joining *j, struct identity *out, struct why *why)
{
	int lock = -1;
	enum err e = home_lock(&lock, j->options->home, why);

	if (!e)
		e = enrol(j, out, why);
	home_unlock(lock);
	return e;
}

static enum err
run_with_token(struct joining *j, struct identity *out, enum join_state *state, struct why *why)
{
	const char *home = j->options->home;
	enum err e = take_token(j, why);

	if (!e && identity_set_wiping(home))
		e = identity_set_wipe(home, why);
	if (e)
		return e;
	e = identity_load(out, home, why);
	if (!e && j->again) {
		*state = JOIN_AGAIN;
		j->name = j->options->name ? j->options->name : out->name;
		return enrol_again(j, out, why);
	}
	if (!e)
		return rejoin(j, out, why);
	if (e != ERR_NOTFOUND)
		return e;
	*state = JOIN_NEW;
	return enrol(j, out, why);
}

enum err
join_run(struct identity *out, enum join_state *state, const struct join_options *options,
    struct why *why)
{
	struct joining j = {.options = options, .name = options->name};
	enum err e = address_normalise(j.url, options->url, why);

	*state = JOIN_ALREADY;
	if (!e) {
		e = look(out, &j, why);
		j.again =
		    !e && membership_lost(options->home, j.url, options->cancel, options->context);
		if (j.again || e == ERR_NOTFOUND || e == ERR_EXISTS)
			e = run_with_token(&j, out, state, why);
	}
	key_free(j.key);
	hash_wipe(&j.token, sizeof(j.token));
	hash_wipe(j.token_text, sizeof(j.token_text));
	return e;
}

void
join_remark(struct why *out, const struct identity *id, enum join_state state)
{
	*out->text = '\0';
	if (state == JOIN_NEW && hex_like_id(id->name))
		err_set(out, ERR_OK,
		    "the name %s looks like an id: where another device's id begins so, the word "
		    "is refused",
		    id->name);
}
