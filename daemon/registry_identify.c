#include <string.h>

#include "hex.h"
#include "registry_state.h"

const char *
registry_state_word(const char *state)
{
	if (strcmp(state, "revoked") == 0)
		return "device-revoked";
	return strcmp(state, "left") == 0 ? "device-left" : "device-suspended";
}

unsigned
registry_role(const char *name)
{
	static const struct {
		const char *name;
		unsigned bit;
	} roles[] = {{"device", ROLE_DEVICE}, {"reader", ROLE_READER},
	    {"submitter", ROLE_SUBMITTER}, {"admin", ROLE_ADMIN}};

	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
		if (strcmp(name, roles[i].name) == 0)
			return roles[i].bit;
	return ROLE_NONE;
}

/* What stands against a key and a certificate of this device, NULL if nothing does. */
static const char *
judge(
    const struct store_device *row, const struct x509_info *cert, double now, struct identity *who)
{
	bool current = hash_equal(row->spki, cert->spki, KEY_SPKI_LEN);
	bool in_time = now >= (double)cert->not_before && now <= (double)cert->not_after;

	if (strcmp(row->state, "active") != 0)
		return registry_state_word(row->state);
	if (!current) {
		if (in_time && hash_equal(row->previous, cert->spki, KEY_SPKI_LEN))
			who->roles |= ROLE_ROTATED;
		return "key-rotated";
	}
	if (!in_time) {
		who->roles |= ROLE_EXPIRED;
		return "expired-certificate";
	}
	who->roles |= registry_role(row->role);
	return NULL;
}

void
registry_identify(
    struct registry *r, const struct x509_info *cert, double now, struct identity *who)
{
	char name[KEY_ID_HEX];
	uint8_t key[HASH_LEN];

	who->problem = "unknown-device";
	memcpy(who->spki, cert->spki, sizeof(who->spki));
	key_id(key, cert->spki);
	pthread_mutex_lock(&r->lock);
	const struct device *d = registry_device_of_key(r, key);
	if (d) {
		hex_encode(name, d->view.row.id, HASH_LEN);
		if (strcmp(name, cert->common_name) == 0) {
			memcpy(who->device, d->view.row.id, HASH_LEN);
			memcpy(who->owner, d->view.row.id, HASH_LEN);
			who->problem = judge(&d->view.row, cert, now, who);
		}
	}
	pthread_mutex_unlock(&r->lock);
}
