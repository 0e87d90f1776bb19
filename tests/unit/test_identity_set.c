/* stages: gcc openssl address */
/* The files of an identity change together: the process is ended before every single step, and the home must be whole each
 * time it is opened again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "file.h"

/* Every change of the disk in the module under test passes here; the process ends before the one whose turn it is. */
static int steps_left = -1;

static void
step(void)
{
	if (steps_left >= 0 && steps_left-- == 0)
		_exit(9);
}

static enum err
counted_write(const char *path, const void *data, size_t len, mode_t mode, struct why *why)
{
	step();
	return file_write(path, data, len, mode, why);
}

static int
counted_rename(const char *from, const char *to)
{
	step();
	return rename(from, to);
}

#include "home.h"

static enum err
counted_drop(const char *home, const char *name, struct why *why)
{
	step();
	return home_drop(home, name, why);
}

#include "identity.h"

static enum err
counted_save(const struct identity *id, const char *home, struct why *why)
{
	step();
	return identity_save(id, home, why);
}

#define file_write counted_write
#define rename counted_rename
#define home_drop counted_drop
#define identity_save counted_save
#include "../../client/home/identity_set.c"
#undef file_write
#undef rename
#undef home_drop
#undef identity_save

#include "credentials.h"
#include "fleet.h"

static char home[64];
static struct fleet_member ca, other_ca, signer;
static char device[65];

static const char *
at(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", home, name);
	return path;
}

static void
pem_of(char *out, size_t room, const struct x509_cert *cert)
{
	assert_int_equal(x509_to_pem(out, &room, cert), ERR_OK);
}

/* A certificate of `issuer` for the key. */
static void
certify(char *out, size_t room, const struct key *key, const struct fleet_member *issuer, int days)
{
	struct x509_cert cert;
	struct x509_request r = {.use = X509_CLIENT,
	    .common_name = device,
	    .spki = key_spki(key),
	    .not_before = time(NULL) - 3600,
	    .not_after = time(NULL) + days * 86400};

	assert_int_equal(x509_issue(&cert, &r, &issuer->cert, issuer->key, NULL), ERR_OK);
	pem_of(out, room, &cert);
}

static struct join_answer
answer_for(const struct key *key, int days)
{
	struct join_answer a = {.name = "dev", .role = "device", .renew_after = 100 + days};

	strcpy(a.device, device);
	certify(a.certificate, sizeof(a.certificate), key, &ca, days);
	pem_of(a.ca, sizeof(a.ca), &ca.cert);
	pem_of(a.signer, sizeof(a.signer), &signer.cert);
	return a;
}

static void
put(const char *name, const char *text)
{
	assert_int_equal(file_write(at(name), text, strlen(text), 0644, NULL), ERR_OK);
}

/* A home that has joined; its key. */
static struct key *
make_home(void)
{
	struct identity id = {.role = "device", .url_count = 1, .renew_after = 7};
	struct key *key;
	struct join_answer a;
	uint8_t hash[32];

	strcpy(home, "/tmp/test_identity_set.XXXXXX");
	assert_non_null(mkdtemp(home));
	ca = fleet_ca("ca");
	other_ca = fleet_ca("other");
	signer = fleet_issue(&ca, X509_SIGNER, "signer", -3600, 86400);
	assert_int_equal(key_generate(&key, NULL), ERR_OK);
	assert_int_equal(key_save(key, at("key.pem"), NULL), ERR_OK);
	key_id(hash, key_spki(key));
	hex_encode(device, hash, sizeof(hash));
	a = answer_for(key, 10);
	put("cert.pem", a.certificate);
	put("ca.pem", a.ca);
	strcpy(id.device, device);
	strcpy(id.name, "dev");
	strcpy(id.urls[0], "https://localhost:1");
	assert_int_equal(identity_save(&id, home, NULL), ERR_OK);
	return key;
}

static void
drop_home(struct key *key)
{
	assert_int_equal(file_empty_dir(home, NULL), ERR_OK);
	rmdir(home);
	key_free(key);
	fleet_free(&ca);
	fleet_free(&other_ca);
	fleet_free(&signer);
}

static void
load(struct credentials *c)
{
	struct why why = {""};
	enum err e = credentials_load(c, home, &why);

	if (e)
		fail_msg("%s: %s", err_name(e), why.text);
}

/* Runs `work` in a process that ends before its n-th step; false when it came to its end. */
static bool
dies_at(int n, void (*work)(void *), void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		steps_left = n;
		work(arg);
		_exit(0);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 9 || WEXITSTATUS(status) == 0);
	return WEXITSTATUS(status) == 9;
}

static void
renew(void *arg)
{
	if (identity_set_stage(home, arg, NULL) || identity_set_apply(home, NULL))
		_exit(1);
}

static void
finish(void *arg)
{
	(void)arg;
	if (identity_set_apply(home, NULL))
		_exit(1);
}

/* Killed at each step of a renewal, and at each step of finishing it: certificate, CA and signer fit each other whenever the
 * home is opened as an agent opens it. */
static void
test_renewal(void **state)
{
	struct key *key = make_home();
	struct join_answer a = answer_for(key, 20);
	struct credentials c;
	bool ended = false;

	(void)state;
	for (int n = 0; !ended; n++) {
		assert_true(n < 30);
		unlink(at("signer.pem"));
		unlink(at("identity.next"));
		struct join_answer first = answer_for(key, 10);
		put("cert.pem", first.certificate);
		ended = !dies_at(n, renew, &a);
		bool staged = access(at("identity.next"), F_OK) == 0;
		/* A step that finishing never reaches was reached before: so much is sure to end. */
		for (int k = 0; dies_at(k, finish, NULL); k++)
			assert_true(k < 30);
		load(&c);
		assert_int_equal(c.identity.renew_after, n == 0 ? 7 : 120);
		if (staged || ended) {
			assert_true(c.has_signer);
			assert_true(c.cert.not_after > time(NULL) + 15 * 86400);
		} else {
			assert_true(c.cert.not_after < time(NULL) + 15 * 86400);
		}
		assert_int_equal(c.identity.previous_count, 0);
		credentials_deinit(&c);
	}
	drop_home(key);
}

/* The same with a new key: before the answer counts the old key and certificate go together, after that the new ones do, and
 * the old public key is remembered once. */
static void
test_rotation(void **state)
{
	struct key *key = make_home(), *new;
	struct join_answer old = answer_for(key, 10), a;
	struct credentials c;
	char old_key[KEY_PEM_MAX];
	bool ended = false;

	(void)state;
	assert_int_equal(key_pem(key, old_key), ERR_OK);
	assert_int_equal(key_generate(&new, NULL), ERR_OK);
	a = answer_for(new, 20);
	struct identity id;
	assert_int_equal(identity_load(&id, home, NULL), ERR_OK);
	for (int n = 0; !ended; n++) {
		assert_true(n < 30);
		unlink(at("key.new.pem"));
		unlink(at("identity.next"));
		unlink(at("key.pem"));
		assert_int_equal(key_save(new, at("key.new.pem"), NULL), ERR_OK);
		assert_int_equal(key_save(key, at("key.pem"), NULL), ERR_OK);
		put("cert.pem", old.certificate);
		assert_int_equal(identity_save(&id, home, NULL), ERR_OK);
		ended = !dies_at(n, renew, &a);
		bool staged = access(at("identity.next"), F_OK) == 0;
		for (int k = 0; dies_at(k, finish, NULL); k++)
			assert_true(k < 30);
		load(&c);
		bool is_new = memcmp(key_spki(c.key), key_spki(new), KEY_SPKI_LEN) == 0;
		assert_int_equal(is_new, staged || ended);
		assert_int_equal(access(at("key.new.pem"), F_OK) == 0, !is_new);
		assert_int_equal(c.identity.previous_count, is_new);
		if (is_new)
			assert_memory_equal(c.identity.previous[0], key_spki(key), KEY_SPKI_LEN);
		assert_string_equal(c.identity.device, device);
		credentials_deinit(&c);
	}
	struct stat st;
	assert_int_equal(stat(at("key.pem"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	key_free(new);
	drop_home(key);
}

static void
leave(void *arg)
{
	(void)arg;
	if (identity_set_wipe(home, NULL))
		_exit(1);
}

/* From the first step on the home has not joined; in the end nothing secret is left. */
static void
test_wipe(void **state)
{
	struct key *key = make_home();
	struct identity id;
	bool ended = false;

	(void)state;
	for (int n = 0; !ended; n++) {
		assert_true(n < 30);
		ended = !dies_at(n, leave, NULL);
		enum err e = identity_load(&id, home, NULL);
		assert_int_equal(e, n == 0 ? ERR_OK : ERR_NOTFOUND);
		assert_int_equal(identity_set_wiping(home), n > 0 && !ended);
	}
	assert_int_equal(rmdir(home), 0);
	key_free(key);
	fleet_free(&ca);
	fleet_free(&other_ca);
	fleet_free(&signer);
}

static void
refused(const struct join_answer *a, const struct key *key, const char *text)
{
	struct why why = {""};

	assert_int_not_equal(identity_set_check(a, device, key_spki(key), &why), ERR_OK);
	if (!strstr(why.text, text))
		fail_msg("\"%s\" does not say \"%s\"", why.text, text);
}

/* What must not be put in place. */
static void
test_check(void **state)
{
	struct key *key = make_home(), *stranger;
	struct join_answer good = answer_for(key, 20), a = good;

	(void)state;
	assert_int_equal(identity_set_check(&good, device, key_spki(key), NULL), ERR_OK);
	assert_int_equal(key_generate(&stranger, NULL), ERR_OK);
	refused(&good, stranger, "not for this device's key");
	a.device[0] = a.device[0] == 'a' ? 'b' : 'a';
	refused(&a, key, "another device");
	a = good;
	certify(a.certificate, sizeof(a.certificate), key, &other_ca, 20);
	refused(&a, key, "not for this device's key");
	a = good;
	pem_of(a.signer, sizeof(a.signer), &other_ca.cert);
	refused(&a, key, "not certified by the CA");
	a = good;
	strcpy(a.ca, good.certificate);
	refused(&a, key, "among the CAs is none");
	strcpy(a.ca, "junk");
	refused(&a, key, "no CA certificate");
	/* While a CA is replaced: both, and a certificate of either. */
	a = good;
	size_t len = strlen(a.ca);
	pem_of(a.ca + len, sizeof(a.ca) - len, &other_ca.cert);
	assert_int_equal(identity_set_check(&a, device, key_spki(key), NULL), ERR_OK);
	certify(a.certificate, sizeof(a.certificate), key, &other_ca, 20);
	assert_int_equal(identity_set_check(&a, device, key_spki(key), NULL), ERR_OK);
	key_free(stranger);
	drop_home(key);
}

/* A damaged staged answer is dropped; key and certificate that do not belong together are named. */
static void
test_damage(void **state)
{
	struct key *key = make_home(), *stranger;
	struct credentials c;
	struct why why;

	(void)state;
	put("identity.next", "{\"device\": 5");
	assert_int_equal(identity_set_apply(home, NULL), ERR_OK);
	assert_int_not_equal(access(at("identity.next"), F_OK), 0);
	load(&c);
	credentials_deinit(&c);
	assert_int_equal(key_generate(&stranger, NULL), ERR_OK);
	unlink(at("key.pem"));
	assert_int_equal(key_save(stranger, at("key.pem"), NULL), ERR_OK);
	assert_int_equal(credentials_load(&c, home, &why), ERR_CORRUPT);
	assert_non_null(strstr(why.text, "key.pem does not belong to cert.pem"));
	key_free(stranger);
	drop_home(key);
}

static void
test_lock(void **state)
{
	struct key *key = make_home();
	struct why why = {""};
	int one, two;

	(void)state;
	assert_int_equal(home_holder(home), 0);
	assert_int_equal(home_lock(&one, home, NULL), ERR_OK);
	assert_int_equal(home_holder(home), getpid());
	assert_int_equal(home_lock(&two, home, &why), ERR_STATE);
	assert_non_null(strstr(why.text, "another process"));
	home_unlock(one);
	assert_int_equal(home_holder(home), 0);
	assert_false(home_has(home, HOME_ROTATE));
	assert_int_equal(home_put(home, HOME_ROTATE, "", NULL), ERR_OK);
	assert_true(home_has(home, HOME_ROTATE));
	assert_int_equal(home_drop(home, HOME_ROTATE, NULL), ERR_OK);
	assert_false(home_has(home, HOME_ROTATE));
	assert_int_equal(home_drop(home, HOME_ROTATE, NULL), ERR_OK);
	drop_home(key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_renewal),
	    cmocka_unit_test(test_rotation),
	    cmocka_unit_test(test_wipe),
	    cmocka_unit_test(test_check),
	    cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
