/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "fleet.h"
#include "hex.h"

static struct fleet_member ca;
static struct why why;

static int
make_ca(void **state)
{
	(void)state;
	ca = fleet_ca("Rivulet CA");
	return 0;
}

static int
drop_ca(void **state)
{
	(void)state;
	fleet_free(&ca);
	return 0;
}

static void
issue_and_parse(void **state)
{
	static const enum x509_use use[] = {X509_CLIENT, X509_SIGNER, X509_SERVER};
	struct x509_info info;
	time_t now = time(NULL);

	(void)state;
	assert_int_equal(x509_parse(&info, &ca.cert, &why), ERR_OK);
	assert_true(info.is_ca);
	assert_string_equal(info.common_name, "Rivulet CA");
	for (size_t i = 0; i < 3; i++) {
		struct fleet_member m =
		    fleet_issue(&ca, use[i], "a name, with = + \\ \"x\"", -172800, 90);
		assert_int_equal(x509_parse(&info, &m.cert, &why), ERR_OK);
		assert_string_equal(info.common_name, "a name, with = + \\ \"x\"");
		assert_false(info.is_ca);
		assert_memory_equal(info.spki, key_spki(m.key), KEY_SPKI_LEN);
		assert_in_range(info.not_before, now - 172800, now - 172800 + 60);
		assert_in_range(info.not_after, now + 90, now + 90 + 60);
		fleet_free(&m);
	}
}

static struct x509_request
request_for(const struct key *key)
{
	return (struct x509_request){.use = X509_CLIENT,
	    .common_name = "device",
	    .spki = key_spki(key),
	    .not_before = 1700000000,
	    .not_after = 1800000000};
}

static enum err
issue(struct x509_cert *out, const struct x509_request *r)
{
	return x509_issue(out, r, &ca.cert, ca.key, &why);
}

static void
far_dates(void **state)
{
	struct x509_request r = request_for(ca.key);
	struct x509_cert cert;
	struct x509_info info;

	(void)state;
	r.not_before = -5;
	r.not_after = INT64_C(253402300799);
	assert_int_equal(issue(&cert, &r), ERR_OK);
	assert_int_equal(x509_parse(&info, &cert, &why), ERR_OK);
	assert_int_equal(info.not_before, 946684800);
	assert_int_equal(info.not_after, INT64_C(253402300799));
	r.not_after++;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	r.not_after = INT64_MAX;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	r.not_before = 1800000000;
	r.not_after = 1700000000;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	r.not_before = r.not_after = 100000;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
}

static void
bad_requests(void **state)
{
	static char text[70], host[300];
	static const char *names[X509_NAMES_MAX + 1];
	uint8_t spki[KEY_SPKI_LEN] = {0};
	struct x509_request r = request_for(ca.key);
	struct x509_cert cert;

	(void)state;
	memset(text, 'x', 65);
	r.common_name = text;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	text[64] = '\0';
	assert_int_equal(issue(&cert, &r), ERR_OK);
	r.common_name = "";
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	r = request_for(ca.key);
	r.spki = spki;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	r = request_for(ca.key);
	assert_int_equal(x509_issue(&cert, &r, NULL, ca.key, &why), ERR_INVALID);
	r.use = X509_SERVER;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	r.names = names;
	r.name_count = 1;
	static const char *const bad[] = {
	    "", "two words", "a/b", "1.2.3.4:80", "[::1]", "h\xc3\xa9"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		names[0] = bad[i];
		assert_int_equal(issue(&cert, &r), ERR_INVALID);
	}
	memset(host, 'h', 254);
	names[0] = host;
	assert_int_equal(issue(&cert, &r), ERR_INVALID);
	host[253] = '\0';
	for (size_t i = 0; i <= X509_NAMES_MAX; i++)
		names[i] = host;
	r.name_count = X509_NAMES_MAX;
	assert_int_equal(issue(&cert, &r), ERR_LIMIT);
	for (size_t i = 0; i <= X509_NAMES_MAX; i++)
		names[i] = "gateway.example";
	assert_int_equal(issue(&cert, &r), ERR_OK);
	r.name_count++;
	assert_int_equal(issue(&cert, &r), ERR_LIMIT);
}

static void
serials_differ(void **state)
{
	struct x509_request r = request_for(ca.key);
	struct x509_cert a, b;

	(void)state;
	assert_int_equal(issue(&a, &r), ERR_OK);
	assert_int_equal(issue(&b, &r), ERR_OK);
	/* Version [0] takes 5 bytes after the two outer headers of 4; then INTEGER, 16 bytes. */
	assert_int_equal(a.der[13], 0x02);
	assert_int_equal(a.der[14], 16);
	assert_true((a.der[15] & 0x80) == 0);
	assert_memory_not_equal(a.der + 15, b.der + 15, 16);
}

static void
verify(void **state)
{
	struct fleet_member other = fleet_ca("Rivulet CA");
	struct fleet_member m = fleet_issue(&ca, X509_CLIENT, "device", -7200, -3600);
	struct fleet_member n = fleet_issue(&other, X509_CLIENT, "device", -7200, 3600);
	struct x509_cert bad;

	(void)state;
	assert_int_equal(x509_verify(&m.cert, &ca.cert), ERR_OK);
	assert_int_equal(x509_verify(&ca.cert, &ca.cert), ERR_OK);
	assert_int_equal(x509_verify(&n.cert, &ca.cert), ERR_DENIED);
	assert_int_equal(x509_verify(&m.cert, &other.cert), ERR_DENIED);
	assert_int_equal(x509_verify(&other.cert, &ca.cert), ERR_DENIED);
	assert_int_equal(x509_verify(&m.cert, &m.cert), ERR_DENIED);
	unsigned good = 0;
	for (size_t i = 0; i < m.cert.len; i++) {
		bad = m.cert;
		bad.der[i] ^= 1;
		good += x509_verify(&bad, &ca.cert) == ERR_OK;
	}
	assert_int_equal(good, 0);
	for (size_t i = 0; i < m.cert.len; i++) {
		bad = m.cert;
		bad.len = i;
		assert_int_equal(x509_verify(&bad, &ca.cert), ERR_INVALID);
	}
	fleet_free(&other);
	fleet_free(&m);
	fleet_free(&n);
}

/* What names the signing key, and the names inside. */
static void
issuer_and_names(void **state)
{
	struct fleet_member server = fleet_issue(&ca, X509_SERVER, "coordinator", -1, 60);
	uint8_t id[X509_KEY_ID_LEN];
	char names[X509_NAMES_MAX][X509_NAME_MAX];
	size_t count = X509_NAMES_MAX;
	struct x509_info info;

	(void)state;
	x509_key_id(id, key_spki(ca.key));
	assert_int_equal(x509_parse(&info, &server.cert, NULL), ERR_OK);
	assert_memory_equal(info.issuer_key, id, sizeof(id));
	assert_int_equal(x509_names(names, &count, &server.cert), ERR_OK);
	assert_int_equal(count, 4);
	assert_string_equal(names[0], "localhost");
	assert_string_equal(names[1], "coordinator.example");
	assert_string_equal(names[2], "127.0.0.1");
	assert_string_equal(names[3], "::1");
	count = 3;
	assert_int_equal(x509_names(names, &count, &server.cert), ERR_LIMIT);
	count = 3;
	assert_int_equal(x509_names(names, &count, &ca.cert), ERR_OK);
	assert_int_equal(count, 0);
	fleet_free(&server);
}

static void
leaf_cannot_issue(void **state)
{
	struct fleet_member m = fleet_issue(&ca, X509_CLIENT, "device", -7200, 3600);
	struct x509_request r = request_for(ca.key);
	struct x509_cert cert;

	(void)state;
	assert_int_equal(x509_issue(&cert, &r, &m.cert, m.key, &why), ERR_UNSUPPORTED);
	assert_int_equal(x509_issue(&cert, &r, &ca.cert, m.key, &why), ERR_UNSUPPORTED);
	fleet_free(&m);
}

static void
pem(void **state)
{
	char text[2 * X509_DER_MAX], twice[4 * X509_DER_MAX];
	struct x509_cert back;
	size_t len = sizeof(text);

	(void)state;
	assert_int_equal(x509_to_pem(text, &len, &ca.cert), ERR_OK);
	assert_int_equal(len, strlen(text));
	assert_int_equal(x509_from_pem(&back, text, &why), ERR_OK);
	assert_int_equal(back.len, ca.cert.len);
	assert_memory_equal(back.der, ca.cert.der, back.len);
	snprintf(twice, sizeof(twice), "%s%s", text, text);
	assert_int_equal(x509_from_pem(&back, twice, &why), ERR_INVALID);
	assert_int_equal(x509_from_pem(&back, "", &why), ERR_INVALID);
	text[100] = '!';
	assert_int_equal(x509_from_pem(&back, text, &why), ERR_INVALID);
	len = 100;
	assert_int_equal(x509_to_pem(text, &len, &ca.cert), ERR_LIMIT);
}

static void
csr_good(void **state)
{
	uint8_t der[X509_CSR_MAX], spki[KEY_SPKI_LEN];
	struct key *key = NULL;
	size_t len = sizeof(der);

	(void)state;
	assert_int_equal(key_generate(&key, &why), ERR_OK);
	assert_int_equal(x509_csr_make(der, &len, key, "new device", &why), ERR_OK);
	assert_int_equal(x509_csr_check(der, len, spki, &why), ERR_OK);
	assert_memory_equal(spki, key_spki(key), KEY_SPKI_LEN);
	assert_int_equal(x509_csr_check(der, len - 1, spki, &why), ERR_INVALID);
	assert_int_equal(x509_csr_check(der, len + 1, spki, &why), ERR_INVALID);
	assert_int_equal(x509_csr_check(der, 0, spki, &why), ERR_INVALID);
	assert_int_equal(x509_csr_check(der, X509_CSR_MAX + 1, spki, &why), ERR_LIMIT);
	len = 50;
	assert_int_equal(x509_csr_make(der, &len, key, "new device", &why), ERR_LIMIT);
	key_free(key);
}

/* Every bit of a request matters: its own signature covers it. */
static void
csr_changed(void **state)
{
	uint8_t der[X509_CSR_MAX], spki[KEY_SPKI_LEN];
	struct key *key = NULL;
	size_t len = sizeof(der);
	unsigned denied = 0;

	(void)state;
	assert_int_equal(key_generate(&key, &why), ERR_OK);
	assert_int_equal(x509_csr_make(der, &len, key, "new device", &why), ERR_OK);
	for (size_t i = 0; i < len; i++) {
		der[i] ^= 1;
		enum err e = x509_csr_check(der, len, spki, &why);
		assert_int_not_equal(e, ERR_OK);
		denied += e == ERR_DENIED;
		der[i] ^= 1;
	}
	/* At least the name's ten bytes and the signature's two numbers. */
	assert_true(denied > 60);
	key_free(key);
}

/* Files of the fuzz corpus that openssl made, each with what must be said of it. */
static void
csr_from_elsewhere(void **state)
{
	static const struct {
		const char *file;
		enum err want;
	} known[] = {
	    {"good-openssl", ERR_OK},
	    {"good-extensions", ERR_OK},
	    {"bad-signature", ERR_DENIED},
	    {"foreign-key", ERR_DENIED},
	    {"rsa", ERR_UNSUPPORTED},
	    {"p384", ERR_UNSUPPORTED},
	    {"ed25519", ERR_UNSUPPORTED},
	    {"sha384", ERR_UNSUPPORTED},
	    {"truncated", ERR_INVALID},
	    {"trailing", ERR_INVALID},
	    {"text", ERR_INVALID},
	};
	uint8_t spki[KEY_SPKI_LEN];
	char path[100], *data;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		snprintf(path, sizeof(path), "tests/fuzz/corpus/csr/%s", known[i].file);
		assert_int_equal(file_read(path, 1 << 20, &data, &len, &why), ERR_OK);
		enum err e = x509_csr_check((uint8_t *)data, len, spki, &why);
		if (e != known[i].want)
			print_error("%s: %s (%s)\n", path, err_name(e), why.text);
		assert_int_equal(e, known[i].want);
		free(data);
	}
}

static void
put_pem(const char *dir, const char *name, const struct x509_cert *cert)
{
	char path[128], text[2 * X509_DER_MAX];
	size_t len = sizeof(text);

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(x509_to_pem(text, &len, cert), ERR_OK);
	assert_int_equal(file_write(path, text, len, 0644, &why), ERR_OK);
}

static int
shell(const char *dir, const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "cd %s && %s >>log 2>&1", dir, command);
	int status = system(line); /* NOLINT(cert-env33-c) */
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A second implementation reads what we write, in its strict mode. */
static void
openssl_agrees(void **state)
{
	char dir[] = "/tmp/rivulet-x509-XXXXXX";
	struct fleet_member server = fleet_issue(&ca, X509_SERVER, "coordinator", -3600, 3600);
	struct fleet_member client = fleet_issue(&ca, X509_CLIENT, "device", -3600, 3600);
	struct fleet_member signer = fleet_issue(&ca, X509_SIGNER, "signer", -3600, 3600);
	const char *strict = "openssl verify -x509_strict -check_ss_sig -CAfile ca -purpose";
	char line[256];

	(void)state;
	assert_non_null(mkdtemp(dir));
	if (shell(dir, "openssl version") != 0) {
		shell(dir, "rm -rf \"$PWD\"");
		skip();
	}
	put_pem(dir, "ca", &ca.cert);
	put_pem(dir, "server", &server.cert);
	put_pem(dir, "client", &client.cert);
	put_pem(dir, "signer", &signer.cert);
	static const struct {
		const char *options;
		int want;
	} checks[] = {
	    {"sslserver -verify_hostname localhost server", 0},
	    {"sslserver -verify_hostname coordinator.example server", 0},
	    {"sslserver -verify_ip 127.0.0.1 server", 0},
	    {"sslserver -verify_ip ::1 server", 0},
	    {"sslserver -verify_ip 127.0.0.2 server", 2},
	    {"sslserver -verify_hostname other.example server", 2},
	    {"sslclient server", 2},
	    {"sslclient client", 0},
	    {"sslserver client", 2},
	    {"sslserver signer", 2},
	    {"sslclient signer", 2},
	    {"any signer", 0},
	    {"any ca", 0},
	};
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		snprintf(line, sizeof(line), "%s %s", strict, checks[i].options);
		int got = shell(dir, line);
		if (got != checks[i].want) {
			print_error("%s: %d\n", line, got);
			shell(dir, "cat log >&2");
		}
		assert_int_equal(got, checks[i].want);
	}
	shell(dir, "rm -rf \"$PWD\"");
	fleet_free(&server);
	fleet_free(&client);
	fleet_free(&signer);
}

/* An operator's own CA, with a name of several parts in several string types. */
static void
foreign_ca(void **state)
{
	char dir[] = "/tmp/rivulet-x509-XXXXXX", path[64], *text;
	struct fleet_member own = {.key = NULL};
	size_t len;

	(void)state;
	assert_non_null(mkdtemp(dir));
	if (shell(dir, "openssl version") != 0) {
		shell(dir, "rm -rf \"$PWD\"");
		skip();
	}
	assert_int_equal(
	    shell(dir,
		"openssl ecparam -name prime256v1 -genkey -noout -out key && chmod 600 key && "
		"openssl req -new -x509 -sha256 -key key -out ca -utf8 -days 2 "
		"-subj '/C=DE/O=Stadtwerke, K\xc3\xb6ln/OU=Fleet/CN=Own CA'"),
	    0);
	snprintf(path, sizeof(path), "%s/key", dir);
	assert_int_equal(key_load(&own.key, path, &why), ERR_OK);
	snprintf(path, sizeof(path), "%s/ca", dir);
	assert_int_equal(file_read(path, 10000, &text, &len, &why), ERR_OK);
	assert_int_equal(x509_from_pem(&own.cert, text, &why), ERR_OK);
	struct fleet_member m = fleet_issue(&own, X509_CLIENT, "device", -3600, 3600);
	put_pem(dir, "client", &m.cert);
	assert_int_equal(shell(dir, "openssl verify -CAfile ca -purpose sslclient client"), 0);
	shell(dir, "rm -rf \"$PWD\"");
	free(text);
	fleet_free(&own);
	fleet_free(&m);
}

/* Of version 1.0 with mbedTLS 2.28: a CA, and the certificate of its signer. */
static const char old_ca[] = "-----BEGIN CERTIFICATE-----\n"
			     "MIIBkDCCATOgAwIBAgIQRct3ur75jM2TOYgj465GFzAMBggqhkjOPQQDAgUAMBUx\n"
			     "EzARBgNVBAMMClJpdnVsZXQgQ0EwHhcNMjYxMTIwMjMyMzAyWhcNNDYxMTE3MjMy\n"
			     "MzAyWjAVMRMwEQYDVQQDDApSaXZ1bGV0IENBMFkwEwYHKoZIzj0CAQYIKoZIzj0D\n"
			     "AQcDQgAE7MEcjauHSqvsVmydo5cLi302SmlURvy8/H73BmTMrZ/eTLgTSphjw1ve\n"
			     "ZYEsFO2AwBlBxiTYAUosItsF7QdpTaNjMGEwDwYDVR0TAQH/BAUwAwEB/zAOBgNV\n"
			     "HQ8BAf8EBAMCAQYwHQYDVR0OBBYEFFRJ7wfbW+nDw9lfMxd/4xV2ovAbMB8GA1Ud\n"
			     "IwQYMBaAFFRJ7wfbW+nDw9lfMxd/4xV2ovAbMAwGCCqGSM49BAMCBQADSQAwRgIh\n"
			     "APhQU3V3GxbuDEyQa8AEqRiuYUyIHYlr1T1CBo8fYDwHAiEAw9nYZW7qH9zvezM5\n"
			     "TOwoD8daiBCiCKt2KOu5DnxGfsI=\n"
			     "-----END CERTIFICATE-----\n";
static const char old_leaf[] = "-----BEGIN CERTIFICATE-----\n"
			       "MIIBpjCCAUqgAwIBAgIQXZ4BQfON5A1o+hioQERmzjAMBggqhkjOPQQDAgUAMBUx\n"
			       "EzARBgNVBAMMClJpdnVsZXQgQ0EwHhcNMjYxMTIwMjMyMzAyWhcNNDYxMTE3MjMy\n"
			       "MzAyWjAaMRgwFgYDVQQDDA9SaXZ1bGV0IHJlY29yZHMwWTATBgcqhkjOPQIBBggq\n"
			       "hkjOPQMBBwNCAASz6Th2Ws93FWs5OquJ1mYHQrE+sVFVKqrxym+cgJHdkyBtaCUF\n"
			       "WItIkCCze2T1FvUbR5jtgw2rCb6s0xhV3Hhfo3UwczAMBgNVHRMBAf8EAjAAMA4G\n"
			       "A1UdDwEB/wQEAwIHgDATBgNVHSUEDDAKBggrBgEFBQcDJDAdBgNVHQ4EFgQUN7+g\n"
			       "A0JcORUzz+mCAXNzBKGQURwwHwYDVR0jBBgwFoAUVEnvB9tb6cPD2V8zF3/jFXai\n"
			       "8BswDAYIKoZIzj0EAwIFAANIADBFAiEAmsIvbaSMgSiKacd7W6gYRc4fv4ayQL5W\n"
			       "xSkfQ/j5VasCIBP7Z/n6BhucHKG0yCSb/O0OrSwz0RiBijWBUn3czahm\n"
			       "-----END CERTIFICATE-----\n";

/* RFC 5758, 3.2: the parameters of ecdsa-with-SHA256 are left out. Certificates that have a NULL there stay good. */
static void
no_parameters(void **state)
{
	static const uint8_t with_null[] = {
	    0x30, 0x0c, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02, 0x05, 0x00};
	char dir[] = "/tmp/test_x509.XXXXXX";
	struct x509_cert before, issuer;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(x509_from_pem(&issuer, old_ca, &why), ERR_OK);
	assert_int_equal(x509_from_pem(&before, old_leaf, &why), ERR_OK);
	assert_non_null(memmem(before.der, before.len, with_null, sizeof(with_null)));
	assert_int_equal(x509_verify(&before, &issuer), ERR_OK);
	struct fleet_member m = fleet_issue(&ca, X509_CLIENT, "device", -3600, 3600);
	assert_null(memmem(m.cert.der, m.cert.len, with_null, sizeof(with_null)));
	assert_null(memmem(ca.cert.der, ca.cert.len, with_null, sizeof(with_null)));
	put_pem(dir, "client", &m.cert);
	assert_int_equal(shell(dir,
			     "openssl asn1parse -in client >parsed && ! grep -q NULL parsed && "
			     "test $(grep -c ecdsa-with-SHA256 parsed) = 2"),
	    0);
	shell(dir, "rm -rf \"$PWD\"");
	fleet_free(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(issue_and_parse),
	    cmocka_unit_test(far_dates),
	    cmocka_unit_test(bad_requests),
	    cmocka_unit_test(serials_differ),
	    cmocka_unit_test(verify),
	    cmocka_unit_test(issuer_and_names),
	    cmocka_unit_test(leaf_cannot_issue),
	    cmocka_unit_test(pem),
	    cmocka_unit_test(csr_good),
	    cmocka_unit_test(csr_changed),
	    cmocka_unit_test(csr_from_elsewhere),
	    cmocka_unit_test(openssl_agrees),
	    cmocka_unit_test(foreign_ca),
	    cmocka_unit_test(no_parameters),
	};

	return cmocka_run_group_tests(tests, make_ca, drop_ca);
}
