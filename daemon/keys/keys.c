#include "keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "clock.h"
#include "file.h"
#include "hash.h"
#include "rng.h"

void
keys_path(const char *state_dir, const char *name, char out[KEYS_PATH_MAX])
{
	snprintf(out, KEYS_PATH_MAX, "%s/keys/%s", state_dir, name);
}

static bool
has_database(const char *state_dir)
{
	char path[KEYS_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/rivulet.db", state_dir);
	return stat(path, &st) == 0;
}

/* The error for a missing file. Beside a database it does not advise "run init", which would make another CA: a backup may have been
 * restored without its keys. */
static enum err
missing(const char *state_dir, const char *name, struct why *why)
{
	if (!has_database(state_dir))
		return err_set(why, ERR_NOTFOUND,
		    "%s/keys holds no CA: run \"rivuletd init\" first", state_dir);
	return err_set(why, ERR_NOTFOUND,
	    "%s/keys/%s is missing: put keys/ back (\"rivuletd keys import FILE\")", state_dir,
	    name);
}

enum err
keys_load_cert(const char *state_dir, const char *name, struct x509_cert *out, struct why *why)
{
	char path[KEYS_PATH_MAX];
	char *pem = NULL;
	size_t len;

	keys_path(state_dir, name, path);
	enum err e = file_read(path, KEYS_FILE_MAX, &pem, &len, why);
	if (!e) {
		struct why detail = {""};
		e = x509_from_pem(out, pem, &detail);
		if (e)
			err_set(why, e, "%s: %s", path, detail.text);
	}
	free(pem);
	return e == ERR_NOTFOUND ? missing(state_dir, name, why) : e;
}

enum err
keys_save_cert(
    const char *state_dir, const char *name, const struct x509_cert *cert, struct why *why)
{
	char path[KEYS_PATH_MAX], pem[KEYS_FILE_MAX];
	size_t len = sizeof(pem);

	keys_path(state_dir, name, path);
	enum err e = x509_to_pem(pem, &len, cert);
	return e ? e : file_write(path, pem, strlen(pem), 0644, why);
}

/* Loads a key, making it first if it is not there. */
enum err
keys_need_key(
    const char *state_dir, const char *name, struct key **out, bool *made, struct why *why)
{
	char path[KEYS_PATH_MAX];

	*made = false;
	keys_path(state_dir, name, path);
	enum err e = key_load(out, path, why);
	if (e != ERR_NOTFOUND)
		return e;
	*made = true;
	e = key_generate(out, why);
	return e ? e : key_save(*out, path, why);
}

static enum err
make_authority(const char *state_dir, struct keys_authority *ca, bool *fresh, struct why *why)
{
	int64_t now = (int64_t)clock_wall();

	enum err e = keys_need_key(state_dir, "ca.key", &ca->key, fresh, why);
	if (e)
		return e;
	if (!*fresh && keys_load_cert(state_dir, "ca.crt", &ca->cert, why) == ERR_OK)
		return ERR_OK;
	struct x509_request r = {.use = X509_CA,
	    .common_name = "Rivulet CA",
	    .spki = key_spki(ca->key),
	    .not_before = now - KEYS_BACKDATE,
	    .not_after = now + KEYS_CA_LIFE};
	e = x509_issue(&ca->cert, &r, NULL, ca->key, why);
	return e ? e : keys_save_cert(state_dir, "ca.crt", &ca->cert, why);
}

static enum err
clock_is_behind(int64_t now, int64_t begin, struct why *why)
{
	const time_t moments[] = {(time_t)now, (time_t)begin};
	char dates[2][32] = {"?", "?"};
	struct tm tm;

	for (size_t i = 0; i < 2; i++)
		if (gmtime_r(&moments[i], &tm))
			strftime(dates[i], sizeof(dates[i]), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return err_set(why, ERR_STATE,
	    "the clock, %s, stands before the CA, which begins at %s: set the clock first",
	    dates[0], dates[1]);
}

enum err
keys_begin_under(const struct x509_cert *ca, int64_t *begin, struct why *why)
{
	const int64_t now = clock_unix();
	struct x509_info info;
	enum err e = x509_parse(&info, ca, why);

	if (e)
		return e;
	if (now < info.not_before)
		return clock_is_behind(now, info.not_before, why);
	*begin = info.not_before < now - KEYS_BACKDATE ? info.not_before : now - KEYS_BACKDATE;
	return ERR_OK;
}

/* Issues a certificate for one of the coordinator's own keys. */
enum err
keys_issue(const char *state_dir, const struct keys_authority *ca, const char *stem,
    struct x509_request *r, bool again, struct why *why)
{
	char key_name[32], cert_name[32];
	struct x509_cert cert;
	struct key *key = NULL;
	bool made;

	snprintf(key_name, sizeof(key_name), "%s.key", stem);
	snprintf(cert_name, sizeof(cert_name), "%s.crt", stem);
	enum err e = keys_need_key(state_dir, key_name, &key, &made, why);
	if (!e && (made || again || keys_load_cert(state_dir, cert_name, &cert, NULL))) {
		r->spki = key_spki(key);
		e = keys_begin_under(&ca->cert, &r->not_before, why);
		if (!e)
			e = x509_issue(&cert, r, &ca->cert, ca->key, why);
		if (!e)
			e = keys_save_cert(state_dir, cert_name, &cert, why);
	}
	key_free(key);
	return e;
}

static enum err
make_task_key(const char *state_dir, struct why *why)
{
	char path[KEYS_PATH_MAX];
	uint8_t secret[32];
	struct stat st;

	keys_path(state_dir, "task.key", path);
	if (stat(path, &st) == 0)
		return ERR_OK;
	enum err e = rng_bytes(secret, sizeof(secret));
	if (!e)
		e = file_write(path, secret, sizeof(secret), 0600, why);
	hash_wipe(secret, sizeof(secret));
	return e;
}

/* A new CA beside an old database would shut out every device that the database knows. */
static enum err
check_not_lost(const char *state_dir, struct why *why)
{
	char path[KEYS_PATH_MAX];
	struct stat st;

	keys_path(state_dir, "ca.key", path);
	if (stat(path, &st) == 0 || !has_database(state_dir))
		return ERR_OK;
	return err_set(why, ERR_STATE,
	    "%s has a database, but no CA: put keys/ back (\"rivuletd keys import FILE\"), or, to "
	    "begin with a new CA and no device, move rivulet.db away",
	    state_dir);
}

enum err
keys_init(
    const char *state_dir, const char *const *names, size_t count, bool *fresh, struct why *why)
{
	static const char *const local[] = {"localhost", "127.0.0.1", "::1"};
	int64_t now = (int64_t)clock_wall();
	struct keys_authority ca = {.key = NULL};
	char dir[KEYS_PATH_MAX];

	keys_path(state_dir, "", dir);
	dir[strlen(dir) - 1] = '\0';
	enum err e = check_not_lost(state_dir, why);
	if (!e)
		e = file_mkdirs(dir, 0700, why);
	if (!e)
		e = make_authority(state_dir, &ca, fresh, why);
	struct x509_request server = {.use = X509_SERVER,
	    .common_name = count ? names[0] : "localhost",
	    .names = count ? names : local,
	    .name_count = count ? count : 3,
	    .not_after = now + KEYS_SERVER_LIFE};
	if (!e)
		e = keys_issue(state_dir, &ca, "server", &server, count > 0, why);
	struct x509_request signer = {
	    .use = X509_SIGNER, .common_name = "Rivulet records", .not_after = now + KEYS_CA_LIFE};
	if (!e)
		e = keys_issue(state_dir, &ca, "sign", &signer, false, why);
	if (!e)
		e = make_task_key(state_dir, why);
	key_free(ca.key);
	return e;
}

enum err
keys_load_key(const char *state_dir, const char *name, struct key **out, struct why *why)
{
	char path[KEYS_PATH_MAX];

	keys_path(state_dir, name, path);
	enum err e = key_load(out, path, why);
	return e == ERR_NOTFOUND ? missing(state_dir, name, why) : e;
}

/* A key and its certificate that were mixed up sign what nobody can verify. */
enum err
keys_check_pair(const char *state_dir, const char *stem, const struct key *key,
    const struct x509_cert *cert, struct why *why)
{
	struct x509_info info;

	if (x509_parse(&info, cert, NULL) == ERR_OK &&
	    memcmp(info.spki, key_spki(key), KEY_SPKI_LEN) == 0)
		return ERR_OK;
	return err_set(why, ERR_CORRUPT,
	    "%s/keys: %s.crt is not for %s.key: the files of two coordinators are mixed", state_dir,
	    stem, stem);
}

enum err
keys_check_issuer(const char *state_dir, const char *stem, const struct x509_cert *cert,
    const struct services_ca *ca, struct why *why)
{
	if (x509_verify(cert, &ca->current) == ERR_OK ||
	    (ca->rotating && x509_verify(cert, &ca->next) == ERR_OK))
		return ERR_OK;
	return err_set(why, ERR_CORRUPT,
	    "%s/keys: %s.crt is not of the CA there: the files of two coordinators are mixed",
	    state_dir, stem);
}

enum err
keys_load_task_key(const char *state_dir, uint8_t out[32], struct why *why)
{
	char path[KEYS_PATH_MAX];
	char *data = NULL;
	size_t len = 0;

	keys_path(state_dir, "task.key", path);
	enum err e = file_read(path, 32, &data, &len, why);
	if (!e && len != 32)
		e = err_set(why, ERR_CORRUPT, "%s must have 32 bytes", path);
	if (!e)
		memcpy(out, data, 32);
	if (data)
		hash_wipe(data, len);
	free(data);
	return e == ERR_NOTFOUND ? missing(state_dir, "task.key", why) : e;
}

enum err
keys_load_server(
    const char *state_dir, const struct services_ca *ca, struct services_tls *out, struct why *why)
{
	out->key = NULL;
	enum err e = keys_load_key(state_dir, "server.key", &out->key, why);
	if (!e)
		e = keys_load_cert(state_dir, "server.crt", &out->cert, why);
	if (!e)
		e = keys_check_pair(state_dir, "server", out->key, &out->cert, why);
	if (!e)
		e = keys_check_issuer(state_dir, "server", &out->cert, ca, why);
	if (e) {
		key_free(out->key);
		out->key = NULL;
	}
	return e;
}
