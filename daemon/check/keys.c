#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_inside.h"
#include "clock.h"
#include "file.h"
#include "hash.h"
#include "key.h"
#include "keys.h"
#include "list.h"
#include "x509.h"

#define DAY 86400
#define WARN_DAYS 30

struct pair {
	const char *stem;
	struct key *key; /* NULL if the key cannot be used */
	struct x509_cert cert;
	bool has_cert;
};

/* Reports a key that others may use, and with repair changes its mode, before it is loaded: key_load and the coordinator refuse such a
 * key. */
static void
narrow(struct check *c, const char *name)
{
	char path[CHECK_PATH_MAX];
	struct stat st;

	check_path(c, name, path);
	/* Never through a link: it may lead anywhere, and this may be root. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077) != 0) {
		bool done = c->repair && st.st_nlink == 1 && fchmod(fd, 0600) == 0;
		check_found(c, CHECK_MODE_WIDE, name, done,
		    "others than its owner may use it (mode %03o)", (unsigned)(st.st_mode & 0777));
	}
	if (fd >= 0)
		close(fd);
}

static void
failed(struct check *c, const char *name, enum err e, const struct why *why)
{
	check_found(c, e == ERR_NOTFOUND ? CHECK_KEY_MISSING : CHECK_KEY_DAMAGED, name, false, "%s",
	    why->text);
}

static void
load_key(struct check *c, struct pair *p)
{
	char name[64], path[CHECK_PATH_MAX];
	struct why why = {""};

	snprintf(name, sizeof(name), "keys/%s.key", p->stem);
	check_path(c, name, path);
	narrow(c, name);
	enum err e = key_load(&p->key, path, &why);
	/* ERR_DENIED: readable by others, which was reported. */
	if (e && e != ERR_DENIED)
		failed(c, name, e, &why);
}

static void
load_cert(struct check *c, struct pair *p)
{
	char name[64], path[CHECK_PATH_MAX];
	struct why why = {""};
	char *pem = NULL;
	size_t len;

	snprintf(name, sizeof(name), "keys/%s.crt", p->stem);
	check_path(c, name, path);
	enum err e = file_read(path, KEYS_FILE_MAX, &pem, &len, &why);
	if (!e)
		e = x509_from_pem(&p->cert, pem, &why);
	free(pem);
	if (e)
		failed(c, name, e, &why);
	p->has_cert = !e;
}

static void
judge_dates(struct check *c, const char *name, const struct x509_info *info)
{
	int64_t now = (int64_t)clock_wall();

	if (info->not_before > now)
		check_found(c, CHECK_CERTIFICATE_DATE, name, false, "it is not valid yet");
	else if (info->not_after < now)
		check_found(c, CHECK_CERTIFICATE_DATE, name, false, "it has expired");
	else if (info->not_after < now + WARN_DAYS * DAY)
		check_found(c, CHECK_CERTIFICATE_DATE, name, false, "it expires in %d days",
		    (int)((info->not_after - now) / DAY));
}

static void
judge_pair(struct check *c, struct pair *p, const struct services_ca *ca)
{
	struct x509_info info;
	struct why why = {""};
	char name[64];

	load_key(c, p);
	load_cert(c, p);
	if (!p->has_cert)
		return;
	snprintf(name, sizeof(name), "keys/%s.crt", p->stem);
	enum err e = x509_parse(&info, &p->cert, &why);
	if (e) {
		failed(c, name, ERR_CORRUPT, &why);
		return;
	}
	judge_dates(c, name, &info);
	if (p->key && memcmp(info.spki, key_spki(p->key), KEY_SPKI_LEN) != 0)
		check_found(c, CHECK_KEY_MIXED, name, false, "it is not for %s.key", p->stem);
	if (ca && keys_check_issuer(c->dir, p->stem, &p->cert, ca, NULL))
		check_found(c, CHECK_KEY_MIXED, name, false, "it is not from this CA");
}

/* Loads and checks the CA and, during a replacement, the next CA. NULL if the CA cannot be used. */
static struct services_ca *
judge_ca(struct check *c)
{
	struct services_ca *ca = NULL;
	struct x509_info info;
	struct why why = {""};

	narrow(c, "keys/ca.key");
	enum err e = keys_load_ca(c->dir, &ca, &why);
	/* ERR_DENIED: readable by others, which was reported. */
	if (e == ERR_CORRUPT)
		check_found(c, CHECK_KEY_MIXED, "keys/ca.crt", false, "%s", why.text);
	else if (e && e != ERR_DENIED)
		failed(c, "keys/ca.crt", e, &why);
	if (!e && x509_parse(&info, &ca->current, NULL) == ERR_OK)
		judge_dates(c, "keys/ca.crt", &info);
	return !e ? ca : NULL;
}

/* --- against what was made with them */

static void
judge_registry(struct check *c, const struct services_ca *ca)
{
	struct why why = {""};

	if (keys_compare_database(c->db, ca, false, &why) == ERR_DENIED)
		check_found(c, CHECK_KEY_MIXED, "keys/ca.crt", false, "%s", why.text);
}

static void
judge_task_key(struct check *c)
{
	static const char name[] = "keys/task.key";
	char path[CHECK_PATH_MAX];
	struct why why = {""};
	char *key = NULL;
	size_t len = 0;

	check_path(c, name, path);
	narrow(c, name);
	enum err e = file_read(path, 32, &key, &len, &why);
	if (!e && len != 32)
		e = err_set(&why, ERR_CORRUPT, "it has %zu bytes, not 32", len);
	if (e)
		failed(c, name, e, &why);
	else if (c->has_rows && c->tasks.tried < 2 &&
	    keys_compare_task(c->db, (const uint8_t *)key) == ERR_DENIED)
		check_found(c, CHECK_KEY_DAMAGED, name, false,
		    "it is not the one that the database was used with");
	if (key)
		hash_wipe(key, len);
	free(key);
}

void
check_keys_run(struct check *c)
{
	struct pair server = {.stem = "server"}, sign = {.stem = "sign"};
	char path[CHECK_PATH_MAX];
	struct stat st;

	check_path(c, BACKUP_LIST_NAME, path);
	bool copy = stat(path, &st) == 0;
	check_path(c, "keys", path);
	if (stat(path, &st) != 0) {
		check_found(c, copy ? CHECK_KEY_ELSEWHERE : CHECK_KEY_MISSING, "keys", false,
		    "there are none; a backup without --keys has none");
		return;
	}
	struct services_ca *ca = judge_ca(c);
	if (ca && c->has_rows)
		judge_registry(c, ca);
	judge_pair(c, &server, ca);
	judge_pair(c, &sign, ca);
	judge_task_key(c);
	check_proofs_end(c);
	keys_free_ca(ca);
	key_free(server.key);
	key_free(sign.key);
}
