#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "err.h"
#include "hex.h"
#include "row.h"
#include "store.h"

enum err
names_check(struct store_db *db, const struct store_device *d, struct why *why)
{
	uint8_t holder[32];
	char hex[65];

	if (!d->name[0])
		return ERR_OK;
	enum err e = store_name_holder(db, d->name, d->id, holder);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	hex_encode(hex, holder, sizeof(holder));
	return err_set(why, ERR_EXISTS, "device %s is called \"%s\": give another name (--name)",
	    hex, d->name);
}

/* --- devices of one name, from before names were one device's */

struct doubles {
	uint8_t (*ids)[32];
	size_t count, room;
};

static enum err
note(void *ctx, const uint8_t device[32])
{
	struct doubles *all = ctx;

	uint8_t(*ids)[32] = bytes_grow(all->ids, all->count, &all->room, sizeof(*ids));
	if (!ids)
		return ERR_NOMEM;
	all->ids = ids;
	memcpy(all->ids[all->count++], device, 32);
	return ERR_OK;
}

/* NAME-n, cut before the suffix where it would be too long, between UTF-8 characters. */
static void
suffix(char out[64], const char *name, unsigned n)
{
	char end[16];
	int len = snprintf(end, sizeof(end), "-%u", n);
	size_t keep = strnlen(name, 63 - (size_t)len);

	while (keep > 0 && ((unsigned char)name[keep] & 0xc0) == 0x80)
		keep--;
	snprintf(out, 64, "%.*s%s", (int)keep, name, end);
}

/* Renames a device. *n goes on from the last device of the name, so that a thousand equal names do not cost a million look-ups. */
static enum err
rename_one(struct store_db *db, struct store_device *d, char last[64], unsigned *n)
{
	enum err e = ERR_EXISTS;

	if (strcmp(last, d->name) != 0) {
		snprintf(last, 64, "%s", d->name);
		*n = 1;
	}
	while (e == ERR_EXISTS) {
		suffix(d->name, last, ++*n);
		e = names_check(db, d, NULL);
	}
	return e ? e : store_device_put(db, d);
}

enum err
names_settle(struct store_db *db, enum err (*fn)(void *ctx, const struct store_device *d),
    void *ctx, struct why *why)
{
	struct doubles all = {.count = 0};
	struct store_device d;
	char last[64] = "";
	unsigned n = 1;
	enum err e = store_name_doubles(db, note, &all);

	for (size_t i = 0; !e && i < all.count; i++) {
		e = store_device_get(db, all.ids[i], &d);
		if (!e)
			e = rename_one(db, &d, last, &n);
		if (!e)
			e = fn(ctx, &d);
	}
	free(all.ids);
	return e ? err_set(why, e, "names of devices: %s", err_name(e)) : ERR_OK;
}
