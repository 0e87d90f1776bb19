#ifndef IDENTITY_H
#define IDENTITY_H
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "err.h"
#include "recipe.h"

/*
 * What a device knows about itself, in its home directory: key.pem (0600, made here, never sent), cert.pem, ca.pem and
 * signer.pem (who signs receipts; absent after joining an older coordinator) from joining, and device.json with name, role and the addresses of its coordinators.
 */
#define IDENTITY_URLS_MAX 8
#define IDENTITY_PEM_MAX 16384

struct identity {
	char device[65];
	char name[RECIPE_NAME_MAX];
	char role[16];
	char urls[IDENTITY_URLS_MAX][ADDRESS_MAX];
	size_t url_count;
	int64_t renew_after; /* Unix seconds; informative */
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
/* ERR_LIMIT past IDENTITY_URLS_MAX; fine if it is there already. */
ERR_MUST_USE enum err identity_add_url(struct identity *id, const char *url, struct why *why);

#endif
