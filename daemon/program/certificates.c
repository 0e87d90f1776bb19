#include "certificates.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "hash.h"
#include "keys.h"
#include "registry.h"
#include "services.h"
#include "shared.h"
#include "tls.h"

#define SESSIONS 20000

/* --- the CA */

static bool
same_cert(const struct x509_cert *a, const struct x509_cert *b)
{
	return a->len == b->len && memcmp(a->der, b->der, a->len) == 0;
}

static bool
same_ca(const struct services_ca *a, const struct services_ca *b)
{
	return same_cert(&a->current, &b->current) && a->rotating == b->rotating &&
	    same_cert(&a->next, &b->next) && a->has_old == b->has_old &&
	    same_cert(&a->signer, &b->signer);
}

/* Loads the CA from its files; *out stays NULL if that CA is in use already. */
static enum err
load_ca(const struct services *s, struct services_ca **out, struct why *why)
{
	struct services_ca *fresh = NULL;

	enum err e = keys_load_ca(s->fixed->state_dir, &fresh, why);
	if (e)
		return e;
	const struct services_ca *now = shared_take(s->ca);
	bool same = same_ca(now, fresh);
	shared_give(s->ca, now);
	if (same)
		keys_free_ca(fresh);
	else
		*out = fresh;
	return ERR_OK;
}

/* --- the server's certificate */

static void
free_tls(void *value)
{
	struct services_tls *tls = value;

	if (!tls)
		return;
	tls_context_free(tls->context);
	key_free(tls->key);
	free(tls);
}

static enum err
show(struct services_tls *tls, const struct services_ca *ca, struct why *why)
{
	struct tls_config config = {.server = true,
	    .ca = &ca->current,
	    .other_ca = ca->rotating ? &ca->next : NULL,
	    .cert = &tls->cert,
	    .chain = ca->has_old ? &ca->cross : NULL,
	    .key = tls->key,
	    .cache_entries = SESSIONS};

	return tls_context_new(&tls->context, &config, why);
}

static bool
is_shown(const struct services *s, const struct x509_cert *cert)
{
	const struct services_tls *now = s->tls ? shared_take(s->tls) : NULL;
	bool same = now && same_cert(&now->cert, cert);

	if (now)
		shared_give(s->tls, now);
	return same;
}

/* Loads the server's certificate from its file; *out stays NULL if certificate and CA are in use already. */
static enum err
load_tls(const struct services *s, const struct services_ca *fresh_ca, struct services_tls **out,
    struct why *why)
{
	struct services_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return err_set(why, ERR_NOMEM, "no memory");
	const struct services_ca *now = shared_take(s->ca), *ca = fresh_ca ? fresh_ca : now;
	enum err e = keys_load_server(s->fixed->state_dir, ca, tls, why);
	bool same = !e && !fresh_ca && is_shown(s, &tls->cert);
	if (!e && !same)
		e = show(tls, ca, why);
	shared_give(s->ca, now);
	if (e || same)
		free_tls(tls);
	else
		*out = tls;
	return e;
}

static void
note_dates(struct services *s, const struct services_tls *tls)
{
	const struct services_ca *ca = shared_take(s->ca);
	struct x509_info info, issuer = {.not_before = 0};

	if (x509_parse(&issuer, &ca->current, NULL) == ERR_OK &&
	    x509_parse(&info, &tls->cert, NULL) == ERR_OK) {
		s->certificate_begins =
		    info.not_before > issuer.not_before ? info.not_before : issuer.not_before;
		s->certificate_ends = info.not_after;
	}
	shared_give(s->ca, ca);
}

enum err
certificates_begin(struct services *s, struct why *why)
{
	struct services_tls *tls = NULL;
	enum err e = load_tls(s, NULL, &tls, why);

	if (e)
		return e;
	const struct services_ca *ca = shared_take(s->ca);
	registry_set_ca(s->registry, ca);
	shared_give(s->ca, ca);
	note_dates(s, tls);
	e = shared_new(&s->tls, tls, free_tls);
	return e ? err_set(why, e, "no memory") : ERR_OK;
}

enum err
certificates_load(const struct services *s, struct certificates *out, struct why *why)
{
	*out = (struct certificates){.ca = NULL};
	enum err e = load_ca(s, &out->ca, why);
	if (!e)
		e = load_tls(s, out->ca, &out->tls, why);
	if (!e && (shared_reserve(s->ca) || shared_reserve(s->tls)))
		e = err_set(why, ERR_NOMEM, "no memory");
	if (e)
		certificates_drop(out);
	return e;
}

bool
certificates_use(struct services *s, struct certificates *fresh)
{
	if (fresh->ca) {
		registry_set_ca(s->registry, fresh->ca);
		shared_replace(s->ca, fresh->ca);
	}
	if (fresh->tls) {
		note_dates(s, fresh->tls);
		shared_replace(s->tls, fresh->tls);
	}
	return fresh->ca;
}

void
certificates_drop(struct certificates *fresh)
{
	keys_free_ca(fresh->ca);
	free_tls(fresh->tls);
	*fresh = (struct certificates){.ca = NULL};
}
