#ifndef IDENTITY_H
#define IDENTITY_H
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "err.h"
#include "key.h"
#include "recipe.h"

/*
 * What a device knows about itself, in its home directory: key.pem (0600, made here, never sent), cert.pem, ca.pem and
 * signer.pem (who signs receipts; absent after joining an older coordinator) from joining, and device.json with name, role and the
 * addresses of its coordinators.
 */
#define IDENTITY_URLS_MAX 8
#define IDENTITY_PEM_MAX 16384
#define IDENTITY_KEYS_MAX 4

struct identity {
	char device[65];
	char name[RECIPE_NAME_MAX];
	char role[16];
	char urls[IDENTITY_URLS_MAX][ADDRESS_MAX];
	size_t url_count;
	int64_t renew_after; /* Unix seconds; 0: not known */
	/* Keys before the present key, latest first. */
	uint8_t previous[IDENTITY_KEYS_MAX][KEY_SPKI_LEN];
	size_t previous_count;
};

/* Home directory: `given`, else $RIVULET_HOME, else /var/lib/rivulet-device for root, else ~/.rivulet. Nothing is
 * created. */
ERR_MUST_USE enum err identity_home(char out[PATH_MAX], const char *given, struct why *why);
/* home + "/" + name; ERR_LIMIT if too long. */
ERR_MUST_USE enum err identity_path(
    char out[PATH_MAX], const char *home, const char *name, struct why *why);
/* ERR_NOTFOUND if the home has not joined, ERR_CORRUPT if device.json does not parse. */
ERR_MUST_USE enum err identity_load(struct identity *out, const char *home, struct why *why);
ERR_MUST_USE enum err identity_save(const struct identity *id, const char *home, struct why *why);
bool identity_has_url(const struct identity *id, const char *url);
/* Adds an address, unless *id has it already. ERR_LIMIT past IDENTITY_URLS_MAX. */
ERR_MUST_USE enum err identity_add_url(struct identity *id, const char *url, struct why *why);

/* Adds a replaced key; past IDENTITY_KEYS_MAX the oldest is forgotten. A key that is there already keeps its place. */
void identity_add_previous(struct identity *id, const uint8_t spki[KEY_SPKI_LEN]);

#endif
