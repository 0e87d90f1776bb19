#include "issue.h"

#include <stdio.h>

#include "buf.h"
#include "clock.h"
#include "config.h"
#include "err.h"
#include "exchange.h"
#include "hex.h"
#include "keys.h"
#include "messages.h"
#include "row.h"
#include "services.h"
#include "shared.h"

struct issue {
	const struct services_ca *ca;
	const struct store_device *device;
	bool joining;
	int64_t now, validity; /* seconds */
};

/* Makes a device's certificate. During a replacement of the CA a device that renews gets one of the next CA, and shows by its next request
 * that it trusts that CA; a device that joins trusts only the CA of its token. */
static enum err
make_certificate(const struct issue *i, char out[4096], struct why *why)
{
	bool by_next = i->ca->rotating && !i->joining;
	char name[KEY_ID_HEX];
	struct x509_cert cert;
	size_t room = 4096;
	struct x509_request r = {.use = X509_CLIENT,
	    .common_name = name,
	    .spki = i->device->spki,
	    .not_before = i->now - KEYS_BACKDATE,
	    .not_after = i->now + i->validity};

	hex_encode(name, i->device->id, sizeof(i->device->id));
	enum err e = x509_issue(&cert, &r, by_next ? &i->ca->next : &i->ca->current,
	    by_next ? i->ca->next_key : i->ca->key, why);
	return e ? e : x509_to_pem(out, &room, &cert);
}

static enum err
tell_authorities(const struct services_ca *ca, struct join_answer *a)
{
	size_t room = sizeof(a->ca), signer_room = sizeof(a->signer);

	enum err e = x509_to_pem(a->ca, &room, &ca->current);
	if (!e && ca->rotating) {
		size_t more = sizeof(a->ca) - room;
		e = x509_to_pem(a->ca + room, &more, &ca->next);
	}
	return e ? e : x509_to_pem(a->signer, &signer_room, &ca->signer);
}

static int64_t
validity(const struct services *s)
{
	const struct config *c = shared_take(s->config);
	int64_t seconds = (int64_t)c->device_validity_s;

	shared_give(s->config, c);
	return seconds;
}

enum err
issue_make(const struct services *s, const struct store_device *device, bool joining,
    struct buf *out, struct why *why)
{
	struct issue i = {shared_take(s->ca), device, joining, (int64_t)clock_wall(), validity(s)};
	struct join_answer a = {.renew_after = i.now + i.validity * 2 / 3};

	hex_encode(a.device, device->id, 32);
	snprintf(a.name, sizeof(a.name), "%s", device->name);
	snprintf(a.role, sizeof(a.role), "%s", device->role);
	enum err e = make_certificate(&i, a.certificate, why);
	if (!e)
		e = tell_authorities(i.ca, &a);
	shared_give(s->ca, i.ca);
	return e ? e : messages_joined_encode(out, &a);
}

void
issue_answer(struct exchange *x, const struct store_device *device, bool joining, unsigned status)
{
	struct why why = {""};
	struct buf out;

	buf_init(&out, ISSUE_ANSWER_MAX);
	enum err e = issue_make(x->services, device, joining, &out, &why);
	if (e)
		exchange_failed(x, e, &why);
	else
		exchange_bytes(x, status, "application/json", out.data, out.len);
	buf_deinit(&out);
}
