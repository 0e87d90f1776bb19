/* stages: gcc openssl address */
/* Who is let in, and who is believed. */
#include "tls_fixture.h"

static void
with_client_certificate(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(&client, &ca, "localhost");
	struct wire w = connect_pair(cc, sc);

	(void)state;
	assert_int_equal(w.client_result, TLS_OK);
	assert_int_equal(w.server_result, TLS_OK);
	assert_peer(w.s, &client);
	assert_peer(w.c, &server);
	assert_false(tls_resumed(w.s));
	assert_false(tls_resumed(w.c));
	talk(&w);
	assert_string_equal(tls_why(w.s), "");
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
}

static void
without_client_certificate(void **state)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(NULL, &ca, "localhost");
	struct x509_cert cert;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct wire w = connect_pair(cc, sc);
		assert_int_equal(w.client_result, TLS_OK);
		assert_int_equal(w.server_result, TLS_OK);
		assert_int_equal(tls_peer_cert(w.s, &cert), ERR_NOTFOUND);
		talk(&w);
		assert_int_equal(tls_resumed(w.s), i);
		hang_up(&w);
	}
	tls_context_free(cc);
	tls_context_free(sc);
}

/* The server refuses this client's certificate, tells it so, and does not let it resume either. */
static void
assert_refused(const struct fleet_member *who)
{
	struct tls_context *sc = server_context(&server, 10);
	struct tls_context *cc = client_context(who, &ca, "localhost");

	for (int i = 0; i < 2; i++) {
		struct wire w = connect_pair(cc, sc);
		struct x509_cert cert;
		assert_int_equal(w.server_result, TLS_FAILED);
		assert_int_equal(w.client_result, TLS_FAILED);
		assert_int_not_equal(strlen(tls_why(w.s)), 0);
		assert_non_null(strstr(tls_why(w.c), "alert"));
		assert_int_equal(tls_peer_cert(w.s, &cert), ERR_NOTFOUND);
		assert_int_equal(tls_handshake(w.s), TLS_FAILED);
		hang_up(&w);
	}
	tls_context_free(cc);
	tls_context_free(sc);
}

static void
foreign_client(void **state)
{
	struct fleet_member stranger = fleet_issue(&other_ca, X509_CLIENT, "device", -3600, 3600);

	(void)state;
	assert_refused(&stranger);
	fleet_free(&stranger);
}

/* While the CA is replaced both count, and still no third. */
static void
clients_of_two_cas(void **state)
{
	struct fleet_member third = fleet_ca("Rivulet CA");
	struct fleet_member newer = fleet_issue(&other_ca, X509_CLIENT, "device", -3600, 3600);
	struct fleet_member stranger = fleet_issue(&third, X509_CLIENT, "device", -3600, 3600);
	const struct fleet_member *who[] = {&client, &newer, &stranger};
	struct tls_context *sc = NULL;
	struct tls_config config = {.server = true,
	    .ca = &ca.cert,
	    .other_ca = &other_ca.cert,
	    .cert = &server.cert,
	    .key = server.key,
	    .cache_entries = 10};

	(void)state;
	fleet_check(tls_context_new(&sc, &config, &why), &why);
	for (int i = 0; i < 3; i++) {
		struct tls_context *cc = client_context(who[i], &ca, "localhost");
		struct wire w = connect_pair(cc, sc);
		assert_int_equal(w.server_result, i < 2 ? TLS_OK : TLS_FAILED);
		if (i < 2)
			assert_peer(w.s, who[i]);
		hang_up(&w);
		tls_context_free(cc);
	}
	tls_context_free(sc);
	fleet_free(&third);
	fleet_free(&newer);
	fleet_free(&stranger);
}

/* A client that knows the old CA alone meets a server of the new one, which brings along what the old one said of the new. */
static void
server_of_a_new_ca(void **state)
{
	struct fleet_member newer = fleet_issue(&other_ca, X509_SERVER, "coordinator", -3600, 3600);
	struct x509_cert cross;
	struct x509_request r = {.use = X509_CA,
	    .common_name = "Rivulet CA",
	    .spki = key_spki(other_ca.key),
	    .not_before = time(NULL) - 3600,
	    .not_after = time(NULL) + 3600};

	(void)state;
	fleet_check(x509_issue(&cross, &r, &ca.cert, ca.key, &why), &why);
	for (int i = 0; i < 3; i++) {
		struct tls_context *sc = NULL;
		struct tls_config config = {.server = true,
		    .ca = &other_ca.cert,
		    .cert = &newer.cert,
		    .chain = i == 0 ? NULL : &cross,
		    .key = newer.key};
		fleet_check(tls_context_new(&sc, &config, &why), &why);
		struct tls_context *cc =
		    client_context(NULL, i == 2 ? &other_ca : &ca, "localhost");
		struct wire w = connect_pair(cc, sc);
		if (w.client_result != (i == 0 ? TLS_FAILED : TLS_OK))
			fail_msg("%d: %s", i, tls_why(w.c));
		hang_up(&w);
		tls_context_free(cc);
		tls_context_free(sc);
	}
	fleet_free(&newer);
}

static void
other_uses_are_no_clients(void **state)
{
	struct fleet_member signer = fleet_issue(&ca, X509_SIGNER, "signer", -3600, 3600);

	(void)state;
	assert_refused(&signer);
	assert_refused(&server);
	fleet_free(&signer);
}

static void
own_ca_is_no_client(void **state)
{
	struct fleet_member self = fleet_issue(NULL, X509_CA, "Rivulet CA", -3600, 3600);

	(void)state;
	assert_refused(&self);
	fleet_free(&self);
}

static void
client_dates_do_not_count(void **state)
{
	struct fleet_member old = fleet_issue(&ca, X509_CLIENT, "device", -7200, -3600);
	struct fleet_member early = fleet_issue(&ca, X509_CLIENT, "device", 3600, 7200);
	struct fleet_member *who[2] = {&old, &early};
	struct tls_context *sc = server_context(&server, 10);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tls_context *cc = client_context(who[i & 1], &ca, "localhost");
		struct wire w = connect_pair(cc, sc);
		assert_int_equal(w.client_result, TLS_OK);
		assert_int_equal(w.server_result, TLS_OK);
		assert_peer(w.s, who[i & 1]);
		hang_up(&w);
		tls_context_free(cc);
	}
	tls_context_free(sc);
	fleet_free(&old);
	fleet_free(&early);
}

static void
old_and_foreign_is_refused(void **state)
{
	struct fleet_member stranger = fleet_issue(&other_ca, X509_CLIENT, "device", -7200, -3600);

	(void)state;
	assert_refused(&stranger);
	fleet_free(&stranger);
}

/* What a client makes of a server. */
static enum tls_result
judge(const struct fleet_member *me, const struct fleet_member *trust, const char *name)
{
	struct tls_context *sc = server_context(me, 10);
	struct tls_context *cc = client_context(NULL, trust, name);
	struct wire w = connect_pair(cc, sc);
	enum tls_result r = w.client_result;

	if (r == TLS_FAILED)
		assert_int_not_equal(strlen(tls_why(w.c)), 0);
	assert_int_equal(w.server_result, r);
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
	return r;
}

static void
names_of_the_server(void **state)
{
	(void)state;
	assert_int_equal(judge(&server, &ca, "localhost"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "Coordinator.Example"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "127.0.0.1"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "::1"), TLS_OK);
	assert_int_equal(judge(&server, &ca, "other.example"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "coordinator"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "example"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "127.0.0.2"), TLS_FAILED);
	assert_int_equal(judge(&server, &ca, "::2"), TLS_FAILED);
}

static void
bad_servers(void **state)
{
	struct fleet_member old = fleet_issue(&ca, X509_SERVER, "coordinator", -7200, -3600);
	struct fleet_member early = fleet_issue(&ca, X509_SERVER, "coordinator", 3600, 7200);

	(void)state;
	assert_int_equal(judge(&server, &other_ca, "localhost"), TLS_FAILED);
	assert_int_equal(judge(&old, &ca, "localhost"), TLS_FAILED);
	assert_int_equal(judge(&early, &ca, "localhost"), TLS_FAILED);
	assert_int_equal(judge(&client, &ca, "device"), TLS_FAILED);
	fleet_free(&old);
	fleet_free(&early);
}

/* --- whom a client says it is */

/* Connects with it, CA and all, to a server that trusts `ca`; what that one can say of it afterwards. */
static void
assert_claims(const struct fleet_member *who, const struct x509_cert *chain, enum tls_result result,
    const char *claims)
{
	struct tls_context *sc = server_context(&server, 0), *cc = NULL;
	struct tls_config config = {.ca = &ca.cert,
	    .cert = &who->cert,
	    .chain = chain,
	    .key = who->key,
	    .peer_name = "localhost"};

	fleet_check(tls_context_new(&cc, &config, &why), &why);
	struct wire w = connect_pair(cc, sc);
	assert_int_equal(w.server_result, result);
	assert_string_equal(tls_claimed(w.s), claims);
	assert_string_equal(tls_claimed(w.c), "");
	hang_up(&w);
	tls_context_free(cc);
	tls_context_free(sc);
}

static void
refused_clients_are_named(void **state)
{
	static const char raw[] = "\x1b[31m\" device=\nx";
	struct fleet_member stranger = fleet_issue(&other_ca, X509_CLIENT, raw, -7200, -3600);
	struct fleet_member signer = fleet_issue(&ca, X509_SIGNER, "signer", -3600, 3600);
	char longest[65] = "";

	(void)state;
	memset(longest, 'f', 64);
	struct fleet_member longer = fleet_issue(&other_ca, X509_CLIENT, longest, -3600, 3600);
	assert_claims(&client, NULL, TLS_OK, "device");
	assert_claims(&stranger, NULL, TLS_FAILED, raw);
	/* What is wrong is its CA's, which is looked at first. */
	assert_claims(&stranger, &other_ca.cert, TLS_FAILED, raw);
	assert_claims(&longer, NULL, TLS_FAILED, longest);
	assert_claims(&signer, NULL, TLS_FAILED, "signer");
	assert_claims(&server, NULL, TLS_FAILED, "coordinator");
	assert_claims(&other_ca, NULL, TLS_FAILED, "Rivulet CA");
	fleet_free(&stranger);
	fleet_free(&signer);
	fleet_free(&longer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(with_client_certificate),
	    cmocka_unit_test(without_client_certificate),
	    cmocka_unit_test(foreign_client),
	    cmocka_unit_test(clients_of_two_cas),
	    cmocka_unit_test(server_of_a_new_ca),
	    cmocka_unit_test(other_uses_are_no_clients),
	    cmocka_unit_test(own_ca_is_no_client),
	    cmocka_unit_test(client_dates_do_not_count),
	    cmocka_unit_test(old_and_foreign_is_refused),
	    cmocka_unit_test(names_of_the_server),
	    cmocka_unit_test(bad_servers),
	    cmocka_unit_test(refused_clients_are_named),
	};

	return cmocka_run_group_tests(tests, make_fleet, drop_fleet);
}
