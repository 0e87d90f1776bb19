#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "keys.h"

/*
 * Generations. ca.crt and ca.key are the CA. Once it was replaced, or is about to be, every generation N has its certificate
 * in ca-N.crt: the one equal to ca.crt is the present one, one more is the next one. ca-N.key is the next one's key until it
 * becomes ca.key; ca-N.cross.crt is generation N certified by the one before, under the name they share.
 */

static const char *
name_of(char out[48], uint64_t generation, const char *suffix)
{
	snprintf(out, 48, "ca-%llu.%s", (unsigned long long)generation, suffix);
	return out;
}

static bool
is_there(const char *state_dir, uint64_t generation, const char *suffix)
{
	char path[KEYS_PATH_MAX], name[48];

	keys_path(state_dir, name_of(name, generation, suffix), path);
	return access(path, F_OK) == 0;
}

static bool
same(const struct x509_cert *a, const struct x509_cert *b)
{
	return a->len == b->len && memcmp(a->der, b->der, a->len) == 0;
}

static enum err
load_generation(
    const char *state_dir, uint64_t n, const char *suffix, struct x509_cert *out, struct why *why)
{
	char name[48];

	return keys_load_cert(state_dir, name_of(name, n, suffix), out, why);
}

static enum err
find_generation(const char *state_dir, struct services_ca *ca, struct why *why)
{
	struct x509_cert cert;

	ca->generation = 1;
	if (!is_there(state_dir, 2, "crt"))
		return ERR_OK;
	for (uint64_t n = 1; n < KEYS_GENERATIONS_MAX; n++) {
		if (n > 1 && !is_there(state_dir, n, "crt"))
			break;
		enum err e = is_there(state_dir, n, "crt")
		    ? load_generation(state_dir, n, "crt", &cert, why)
		    : ERR_NOTFOUND;
		if (e && e != ERR_NOTFOUND)
			return e;
		ca->generation = n;
		if (!e && same(&cert, &ca->current))
			return ERR_OK;
	}
	return err_set(
	    why, ERR_CORRUPT, "%s/keys: ca.crt is none of the generations ca-N.crt", state_dir);
}

/* Between the change of ca.crt and that of ca.key the key is still under its own name. */
static enum err
load_present(const char *state_dir, struct services_ca *ca, struct why *why)
{
	char name[48];
	bool apart = ca->generation > 1 && is_there(state_dir, ca->generation, "key");

	enum err e = keys_load_key(
	    state_dir, apart ? name_of(name, ca->generation, "key") : "ca.key", &ca->key, why);
	return e ? e : keys_check_pair(state_dir, "ca", ca->key, &ca->current, why);
}

static enum err
load_next(const char *state_dir, struct services_ca *ca, struct why *why)
{
	uint64_t n = ca->generation + 1;
	char name[48], stem[48];

	ca->rotating = is_there(state_dir, n, "crt");
	if (!ca->rotating)
		return ERR_OK;
	enum err e = load_generation(state_dir, n, "crt", &ca->next, why);
	if (!e)
		e = keys_load_key(state_dir, name_of(name, n, "key"), &ca->next_key, why);
	snprintf(stem, sizeof(stem), "ca-%llu", (unsigned long long)n);
	return e ? e : keys_check_pair(state_dir, stem, ca->next_key, &ca->next, why);
}

/* Loads the CA before, and the current CA certified by it. Without these two files only tokens from before the rotation fail. */
static enum err
load_old(const char *state_dir, struct services_ca *ca, struct why *why)
{
	uint64_t n = ca->generation;

	ca->has_old =
	    n > 1 && is_there(state_dir, n - 1, "crt") && is_there(state_dir, n, "cross.crt");
	if (!ca->has_old)
		return ERR_OK;
	enum err e = load_generation(state_dir, n - 1, "crt", &ca->old, why);
	return e ? e : load_generation(state_dir, n, "cross.crt", &ca->cross, why);
}

enum err
keys_load_ca(const char *state_dir, struct services_ca **out, struct why *why)
{
	struct services_ca *ca = calloc(1, sizeof(*ca));

	if (!ca)
		return err_set(why, ERR_NOMEM, "no memory");
	enum err e = keys_load_cert(state_dir, "ca.crt", &ca->current, why);
	if (!e)
		e = find_generation(state_dir, ca, why);
	if (!e)
		e = load_present(state_dir, ca, why);
	if (!e)
		e = load_next(state_dir, ca, why);
	if (!e)
		e = load_old(state_dir, ca, why);
	if (!e)
		e = keys_load_cert(state_dir, "sign.crt", &ca->signer, why);
	if (!e)
		e = keys_check_issuer(state_dir, "sign", &ca->signer, ca, why);
	if (e) {
		keys_free_ca(ca);
		return e;
	}
	hash_sha256(ca->hash, ca->current.der, ca->current.len);
	*out = ca;
	return ERR_OK;
}

void
keys_free_ca(struct services_ca *ca)
{
	if (!ca)
		return;
	key_free(ca->key);
	key_free(ca->next_key);
	free(ca);
}

/* --- begin */

static enum err
make_next(const char *state_dir, const struct services_ca *ca, struct why *why)
{
	const int64_t now = clock_unix();
	int64_t begin = 0;
	struct x509_cert cross, root;
	struct x509_info info;
	struct key *key = NULL;
	char name[48];
	bool made;

	enum err e = x509_parse(&info, &ca->current, why);
	if (!e)
		e = keys_begin_under(&ca->current, &begin, why);
	if (!e)
		e = keys_need_key(
		    state_dir, name_of(name, ca->generation + 1, "key"), &key, &made, why);
	if (e)
		return e;
	struct x509_request r = {.use = X509_CA,
	    .common_name = info.common_name,
	    .spki = key_spki(key),
	    .not_before = begin,
	    .not_after = now + KEYS_CA_LIFE};
	e = x509_issue(&root, &r, NULL, key, why);
	/* The old CA certifies the new one for no longer than the old CA is valid. */
	if (r.not_after > info.not_after)
		r.not_after = info.not_after;
	if (!e)
		e = x509_issue(&cross, &r, &ca->current, ca->key, why);
	if (!e)
		e = keys_save_cert(
		    state_dir, name_of(name, ca->generation + 1, "cross.crt"), &cross, why);
	/* Last: its presence begins the rotation. */
	if (!e)
		e = keys_save_cert(state_dir, name_of(name, ca->generation + 1, "crt"), &root, why);
	key_free(key);
	return e;
}

enum err
keys_begin_rotation(const char *state_dir, struct why *why)
{
	struct services_ca *ca = NULL;
	char name[48];

	enum err e = keys_load_ca(state_dir, &ca, why);
	if (e)
		return e;
	if (ca->rotating)
		e = err_set(why, ERR_EXISTS,
		    "the CA is being replaced already: \"rivuletd ca finish\" ends that");
	if (!e && !ca->rotating && is_there(state_dir, ca->generation, "key"))
		e = err_set(why, ERR_EXISTS,
		    "an earlier change of the CA was interrupted: \"rivuletd ca finish\" ends it");
	if (!e && ca->generation == 1)
		e = keys_save_cert(state_dir, name_of(name, 1, "crt"), &ca->current, why);
	if (!e)
		e = make_next(state_dir, ca, why);
	keys_free_ca(ca);
	return e;
}

/* --- finish */

static enum err
reissue(const char *state_dir, const struct services_ca *ca, struct why *why)
{
	const struct keys_authority next = {ca->next_key, ca->next};
	int64_t now = (int64_t)clock_wall();
	char names[X509_NAMES_MAX][X509_NAME_MAX];
	const char *list[X509_NAMES_MAX];
	size_t count = X509_NAMES_MAX;
	struct services_tls server;
	struct x509_info info;

	enum err e = keys_load_server(state_dir, ca, &server, why);
	if (e)
		return e;
	key_free(server.key);
	e = x509_parse(&info, &server.cert, why);
	if (!e && x509_names(names, &count, &server.cert))
		e = err_set(why, ERR_INVALID, "server.crt: its names cannot be read");
	for (size_t i = 0; !e && i < count; i++)
		list[i] = names[i];
	struct x509_request r = {.use = X509_SERVER,
	    .common_name = info.common_name,
	    .names = list,
	    .name_count = count,
	    .not_after = now + KEYS_SERVER_LIFE};
	if (!e)
		e = keys_issue(state_dir, &next, "server", &r, true, why);
	struct x509_request signer = {
	    .use = X509_SIGNER, .common_name = "Rivulet records", .not_after = now + KEYS_CA_LIFE};
	return e ? e : keys_issue(state_dir, &next, "sign", &signer, true, why);
}

/* Renames ca-N.key to ca.key, which removes the old CA's key. */
static enum err
settle_key(const char *state_dir, uint64_t generation, struct why *why)
{
	char name[48], from[KEYS_PATH_MAX], to[KEYS_PATH_MAX], dir[KEYS_PATH_MAX];

	keys_path(state_dir, name_of(name, generation, "key"), from);
	keys_path(state_dir, "ca.key", to);
	keys_path(state_dir, "", dir);
	if (rename(from, to) != 0)
		return err_errno(why, "rename %s", from);
	return file_sync_dir(dir, why);
}

enum err
keys_finish_rotation(const char *state_dir, struct why *why)
{
	struct services_ca *ca = NULL;

	enum err e = keys_load_ca(state_dir, &ca, why);
	if (e)
		return e;
	if (ca->rotating) {
		e = reissue(state_dir, ca, why);
		/* From here on the old CA is the old one. */
		if (!e)
			e = keys_save_cert(state_dir, "ca.crt", &ca->next, why);
		if (!e)
			e = settle_key(state_dir, ca->generation + 1, why);
	} else if (ca->generation > 1 && is_there(state_dir, ca->generation, "key")) {
		e = settle_key(state_dir, ca->generation, why);
	} else {
		e = err_set(why, ERR_STATE,
		    "the CA is not being replaced: \"rivuletd ca rotate\" begins that");
	}
	keys_free_ca(ca);
	return e;
}
