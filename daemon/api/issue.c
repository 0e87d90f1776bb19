#include "issue.h"

#include <stdio.h>

#include "clock.h"
#include "hex.h"
#include "messages.h"

#define BACKDATE (2 * 86400) /* for devices whose clock is behind */

/* While the CA is replaced, a device that renews proves by its next request that it holds the next one; a device that joins
 * believes the CA of its token alone. */
static enum err
make_certificate(const struct services *s, const struct store_device *d, int64_t now, bool joining,
    char out[4096], struct why *why)
{
	const struct services_ca *ca = atomic_load(&s->ca);
	bool by_next = ca->rotating && !joining;
	char name[KEY_ID_HEX];
	struct x509_cert cert;
	size_t room = 4096;
	struct x509_request r = {.use = X509_CLIENT,
	    .common_name = name,
	    .spki = d->spki,
	    .not_before = now - BACKDATE,
	    .not_after = now + (int64_t)s->config->device_validity_s};

	hex_encode(name, d->id, sizeof(d->id));
	enum err e = x509_issue(
	    &cert, &r, by_next ? &ca->next : &ca->current, by_next ? ca->next_key : ca->key, why);
	return e ? e : x509_to_pem(out, &room, &cert);
}

static enum err
tell_authorities(const struct services *s, struct join_answer *a)
{
	const struct services_ca *ca = atomic_load(&s->ca);
	size_t room = sizeof(a->ca), signer_room = sizeof(a->signer);

	enum err e = x509_to_pem(a->ca, &room, &ca->current);
	if (!e && ca->rotating) {
		size_t more = sizeof(a->ca) - room;
		e = x509_to_pem(a->ca + room, &more, &ca->next);
	}
	return e ? e : x509_to_pem(a->signer, &signer_room, &ca->signer);
}

void
issue_answer(struct exchange *x, const struct store_device *device, bool joining, unsigned status)
{
	const struct services *s = x->services;
	int64_t now = (int64_t)clock_wall();
	struct join_answer a = {.renew_after = now + (int64_t)s->config->device_validity_s * 2 / 3};
	struct why why = {""};
	struct buf out;

	hex_encode(a.device, device->id, 32);
	snprintf(a.name, sizeof(a.name), "%s", device->name);
	snprintf(a.role, sizeof(a.role), "%s", device->role);
	buf_init(&out, 65536);
	enum err e = make_certificate(s, device, now, joining, a.certificate, &why);
	if (!e)
		e = tell_authorities(s, &a);
	if (!e)
		e = messages_joined_encode(&out, &a);
	if (e)
		exchange_failed(x, e, &why);
	else
		exchange_bytes(x, status, "application/json", out.data, out.len);
	buf_deinit(&out);
}
