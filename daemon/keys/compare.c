#include <string.h>

#include "err.h"
#include "hex.h"
#include "keys.h"
#include "row.h"
#include "store.h"

static bool
is_cert(const struct x509_cert *cert, const uint8_t hash[HASH_LEN])
{
	uint8_t found[HASH_LEN];

	hash_sha256(found, cert->der, cert->len);
	return memcmp(found, hash, HASH_LEN) == 0;
}

/* Is the hash that of the CA before, and has that CA certified the present CA's key? */
static bool
is_old(const struct services_ca *ca, const uint8_t hash[HASH_LEN])
{
	struct x509_info cross, current;

	return ca->has_old && is_cert(&ca->old, hash) &&
	    x509_verify(&ca->cross, &ca->old) == ERR_OK &&
	    x509_parse(&cross, &ca->cross, NULL) == ERR_OK &&
	    x509_parse(&current, &ca->current, NULL) == ERR_OK &&
	    memcmp(cross.spki, current.spki, KEY_SPKI_LEN) == 0;
}

/* The words for who holds the keys: the state's keys/, or an exported file. */
static const char *
holds(bool exported)
{
	return exported ? "it holds" : "keys/ holds";
}

static const char *
remedy(bool exported)
{
	return exported ? "keys/ is not changed; another export is needed"
			: "move keys/ away and put the right ones back (\"rivuletd keys import "
			  "FILE\")";
}

enum err
keys_compare_pinned(
    const struct services_ca *ca, const char *pinned, bool exported, struct why *why)
{
	uint8_t hash[HASH_LEN];
	char hex[2 * HASH_LEN + 1];

	if (!pinned[0])
		return ERR_OK;
	if (hex_decode(hash, HASH_LEN, pinned, strlen(pinned)) &&
	    (memcmp(hash, ca->hash, HASH_LEN) == 0 || is_old(ca, hash) ||
		(ca->rotating && is_cert(&ca->next, hash))))
		return ERR_OK;
	hex_encode(hex, ca->hash, HASH_LEN);
	return err_set(why, ERR_DENIED, "%s the CA %.16s..., and [identity] ca names %.16s...: %s",
	    holds(exported), hex, pinned, remedy(exported));
}

/* --- the database */

/* Enough to tell two CAs apart that were mixed up. */
static uint64_t
name_of(const struct services_ca *ca)
{
	uint64_t name = 0;

	for (size_t i = 0; i < sizeof(name); i++)
		name = name << 8 | ca->hash[i];
	return name;
}

static enum err
find_newest(void *ctx, const struct store_device *d)
{
	uint64_t *newest = ctx;

	if (d->ca_generation > *newest)
		*newest = d->ca_generation;
	return ERR_OK;
}

enum err
keys_compare_database(
    struct store_db *db, const struct services_ca *ca, bool exported, struct why *why)
{
	uint64_t generation = 0, name = name_of(ca), newest = 0;

	enum err e = store_meta_get(db, "ca_generation", &generation);
	if (!e)
		e = store_meta_get(db, "ca", &name);
	if (!e || e == ERR_NOTFOUND)
		e = store_device_each(db, find_newest, &newest);
	if (e)
		return e;
	if (generation == ca->generation && name != name_of(ca))
		return err_set(why, ERR_DENIED, "%s another CA than the database was used with: %s",
		    holds(exported), remedy(exported));
	if (generation > ca->generation || newest > ca->generation + ca->rotating)
		return err_set(why, ERR_DENIED,
		    "%s generation %llu of the CA, and the database knows a later one: %s",
		    holds(exported), (unsigned long long)ca->generation, remedy(exported));
	return ERR_OK;
}

enum err
keys_compare_note(struct store_db *db, const struct services_ca *ca)
{
	enum err e = store_meta_put(db, "ca_generation", ca->generation);

	return e ? e : store_meta_put(db, "ca", name_of(ca));
}

/* --- the task key: nothing but what it has named tells it apart */

static uint64_t
name_of_task_key(const uint8_t key[32])
{
	static const char text[] = "rivulet task key";
	uint8_t mac[HASH_LEN];
	uint64_t name = 0;

	hash_hmac(mac, key, 32, text, sizeof(text) - 1);
	for (size_t i = 0; i < sizeof(name); i++)
		name = name << 8 | mac[i];
	return name;
}

enum err
keys_compare_task(struct store_db *db, const uint8_t key[32])
{
	uint64_t name = 0;

	enum err e = store_meta_get(db, "task_key", &name);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	return name == name_of_task_key(key) ? ERR_OK : ERR_DENIED;
}

enum err
keys_compare_note_task(struct store_db *db, const uint8_t key[32])
{
	return store_meta_put(db, "task_key", name_of_task_key(key));
}
