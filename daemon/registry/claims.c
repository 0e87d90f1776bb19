#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hex.h"
#include "keys.h"
#include "registry_inside.h"
#include "states.h"
#include "store.h"

#define WAITS_MS 900000 /* whoever has to wait asks again within it */

/* After a restore from a backup: keys that are not on record, and whose certificates name a device. */

static bool
is_vouched_for(const struct registry *r, const struct x509_info *cert)
{
	for (size_t i = 0; i < r->ca_count; i++)
		if (memcmp(r->ca[i].key, cert->issuer_key, X509_KEY_ID_LEN) == 0)
			return true;
	return false;
}

/* May a key whose certificate was issued then be newer than the backup's? If not, the key was replaced before the backup was made. */
static bool
may_be_newer(const struct store_device *row, int64_t issued)
{
	return row->restored_key_at == 0 || (double)issued >= floor(row->restored_key_at);
}

void
registry_claim_note(struct registry *r, const struct x509_info *cert, struct identity *who)
{
	uint8_t id[HASH_LEN];

	if (!r->restored ||
	    !hex_decode(id, sizeof(id), cert->common_name, strlen(cert->common_name)))
		return;
	struct device *d = registry_device(r, id);
	const int64_t issued = cert->not_before + KEYS_BACKDATE;
	if (!d || !is_vouched_for(r, cert) || !may_be_newer(&d->view.row, issued))
		return;
	const struct store_device *row = &d->view.row;
	const bool contested = row->state == DEVICE_SUSPENDED && row->claim == CLAIM_CONTESTED;
	if (row->state == DEVICE_ACTIVE ? row->claim == CLAIM_SETTLED : !contested) {
		who->problem = row->state == DEVICE_ACTIVE ? PROBLEM_UNKNOWN_DEVICE
							   : registry_state_problem(row->state);
		return;
	}
	memcpy(who->device, id, sizeof(id));
	memcpy(who->owner, id, sizeof(id));
	who->problem = contested ? PROBLEM_DEVICE_SUSPENDED : PROBLEM_UNAVAILABLE;
	/* A key of a contested device is noted once. */
	who->claims = !contested || !hash_equal(d->noted, cert->spki, KEY_SPKI_LEN);
	who->issued_at = issued;
}

/* --- use of the backup's key */

struct use {
	uint8_t device[32], spki[KEY_SPKI_LEN];
};

static enum err
write_use(struct store_db *db, void *arg, struct why *why)
{
	const struct use *u = arg;

	(void)why;
	return store_claim_use(db, u->device, u->spki);
}

bool
registry_claim_used(struct registry *r, struct device *d)
{
	if (!r->restored || d->view.row.claim != CLAIM_NONE)
		return false;
	d->view.row.claim = CLAIM_USED;
	return true;
}

void
registry_claim_store_use(struct registry *r, const struct identity *who)
{
	struct use *u = calloc(1, sizeof(*u));

	if (!u)
		return;
	memcpy(u->device, who->device, sizeof(u->device));
	memcpy(u->spki, who->spki, sizeof(u->spki));
	if (store_submit(r->store, write_use, registry_seen_written, u))
		free(u);
}

/* --- deciding, which is the caller's */

bool
registry_claim_begin(struct registry *r, const uint8_t id[32], bool *used)
{
	pthread_mutex_lock(&r->lock);
	struct device *d = registry_device(r, id);
	const bool begins = d && !d->claiming;
	if (begins) {
		d->claiming = true;
		*used = d->view.row.claim == CLAIM_USED;
	}
	pthread_mutex_unlock(&r->lock);
	return begins;
}

void
registry_claim_end(
    struct registry *r, const uint8_t id[32], const uint8_t spki[KEY_SPKI_LEN], bool waits)
{
	pthread_mutex_lock(&r->lock);
	struct device *d = registry_device(r, id);
	if (d) {
		d->claiming = false;
		d->waits_ms = waits ? clock_ms() + WAITS_MS : 0;
		memcpy(d->noted, spki, sizeof(d->noted));
	}
	pthread_mutex_unlock(&r->lock);
}
