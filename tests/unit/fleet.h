#ifndef FLEET_H
#define FLEET_H
/* A small fleet for tests: a CA and certificates of every use, made fresh. Ends the test program if it cannot. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "key.h"
#include "x509.h"

struct fleet_member {
	struct key *key;
	struct x509_cert cert;
};

static inline void
fleet_check(enum err e, const struct why *why)
{
	if (!e)
		return;
	fprintf(stderr, "fleet: %s: %s\n", err_name(e), why->text);
	exit(1);
}

/* A certificate for a new key, valid `from` to `to` seconds from now; its own CA if ca is NULL. */
static inline struct fleet_member
fleet_issue(
    const struct fleet_member *ca, enum x509_use use, const char *name, int64_t from, int64_t to)
{
	static const char *const names[] = {"localhost", "coordinator.example", "127.0.0.1", "::1"};
	struct fleet_member m = {.key = NULL};
	struct why why = {""};

	fleet_check(key_generate(&m.key, &why), &why);
	struct x509_request r = {
	    .use = use,
	    .common_name = name,
	    .names = names,
	    .name_count = use == X509_SERVER ? 4 : 0,
	    .spki = key_spki(m.key),
	    .not_before = time(NULL) + from,
	    .not_after = time(NULL) + to,
	};
	fleet_check(
	    x509_issue(&m.cert, &r, ca ? &ca->cert : NULL, ca ? ca->key : m.key, &why), &why);
	return m;
}

static inline struct fleet_member
fleet_ca(const char *name)
{
	return fleet_issue(NULL, X509_CA, name, -3600, 86400);
}

static inline void
fleet_free(struct fleet_member *m)
{
	key_free(m->key);
	m->key = NULL;
}

#endif
