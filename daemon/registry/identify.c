#include <string.h>

#include "clock.h"
#include "hex.h"
#include "registry_inside.h"
#include "services_ca.h"
#include "x509.h"

enum problem_type
registry_state_problem(enum device_state state)
{
	if (state == DEVICE_REVOKED)
		return PROBLEM_DEVICE_REVOKED;
	return state == DEVICE_LEFT ? PROBLEM_DEVICE_LEFT : PROBLEM_DEVICE_SUSPENDED;
}

static const struct {
	const char *name;
	unsigned bit;
} roles[] = {{"device", ROLE_DEVICE}, {"reader", ROLE_READER}, {"submitter", ROLE_SUBMITTER},
    {"admin", ROLE_ADMIN}, {"metrics", ROLE_METRICS}};

const char *
registry_role_name(unsigned set)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (set & roles[i].bit)
			return roles[i].name;
	return "";
}

unsigned
registry_role(const char *name)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (strcmp(name, roles[i].name) == 0)
			return roles[i].bit;
	return ROLE_NONE;
}

void
registry_set_ca(struct registry *r, const struct services_ca *ca)
{
	const struct x509_cert *certs[] = {&ca->current, &ca->next};
	struct x509_info info;

	pthread_mutex_lock(&r->lock);
	r->ca_count = 0;
	for (size_t i = 0; i < (ca->rotating ? 2 : 1); i++) {
		if (x509_parse(&info, certs[i], NULL))
			continue;
		x509_key_id(r->ca[r->ca_count].key, info.spki);
		r->ca[r->ca_count++].generation = ca->generation + i;
	}
	registry_counts_ca(r);
	pthread_mutex_unlock(&r->lock);
}

bool
registry_wants_renewal(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	const struct device *d = registry_device(r, id);
	bool wants = d && registry_counts_behind(r, d);
	pthread_mutex_unlock(&r->lock);
	return wants;
}

void
registry_note_generation(struct registry *r, const uint8_t id[32], uint64_t generation)
{
	pthread_mutex_lock(&r->lock);
	struct device *d = generation ? registry_device(r, id) : NULL;
	if (d && d->view.row.ca_generation != generation) {
		registry_counts_leave(r, d);
		d->view.row.ca_generation = generation;
		registry_counts_enter(r, d);
		d->unsaved = r->renewed = true;
	}
	pthread_mutex_unlock(&r->lock);
}

/* Is the certificate of a CA whose certificates are accepted? Sets who->generation. */
static bool
check_ca(const struct registry *r, const struct x509_info *cert, struct identity *who)
{
	for (size_t i = 0; i < r->ca_count; i++) {
		if (memcmp(r->ca[i].key, cert->issuer_key, X509_KEY_ID_LEN) != 0)
			continue;
		who->generation = r->ca[i].generation;
		return true;
	}
	return r->ca_count == 0;
}

/* The problem of a certificate that leads to this device, or PROBLEM_NONE. */
static enum problem_type
judge(struct registry *r, struct device *d, const struct x509_info *cert, double now,
    struct identity *who, bool *first_use)
{
	const struct store_device *row = &d->view.row;
	bool in_time = now >= (double)cert->not_before && now <= (double)cert->not_after;

	if (d->doubtful || d->claiming || clock_ms() < d->waits_ms)
		return PROBLEM_UNAVAILABLE;
	bool present = hash_equal(row->spki, cert->spki, KEY_SPKI_LEN);
	if (row->state == DEVICE_SUSPENDED && row->claim != CLAIM_CONTESTED && present &&
	    check_ca(r, cert, who))
		who->roles |= ROLE_SUSPENDED;
	if (row->state != DEVICE_ACTIVE)
		return registry_state_problem(row->state);
	if (!present) {
		if (in_time && hash_equal(row->previous, cert->spki, KEY_SPKI_LEN))
			who->roles |= ROLE_ROTATED;
		return PROBLEM_KEY_ROTATED;
	}
	if (!check_ca(r, cert, who))
		return PROBLEM_RETIRED_CA;
	*first_use = registry_claim_used(r, d);
	if (!in_time) {
		who->roles |= ROLE_EXPIRED;
		return PROBLEM_EXPIRED_CERTIFICATE;
	}
	who->roles |= registry_role(row->role);
	return PROBLEM_NONE;
}

void
registry_identify(
    struct registry *r, const struct x509_info *cert, double now, struct identity *who)
{
	char name[KEY_ID_HEX];
	uint8_t key[HASH_LEN];
	bool first_use = false;

	who->problem = PROBLEM_UNKNOWN_DEVICE;
	memcpy(who->spki, cert->spki, sizeof(who->spki));
	key_id(key, cert->spki);
	pthread_mutex_lock(&r->lock);
	struct device *d = registry_device_of_key(r, key);
	if (d) {
		hex_encode(name, d->view.row.id, HASH_LEN);
		if (strcmp(name, cert->common_name) == 0) {
			memcpy(who->device, d->view.row.id, HASH_LEN);
			memcpy(who->owner, d->view.row.id, HASH_LEN);
			who->problem = judge(r, d, cert, now, who, &first_use);
		}
	} else {
		registry_claim_note(r, cert, who);
	}
	pthread_mutex_unlock(&r->lock);
	if (first_use)
		registry_claim_store_use(r, who);
}
