#ifndef NAMES_H
#define NAMES_H
#include "err.h"

struct store_db;
struct store_device;

/* Names of devices are unique: no two active or suspended devices have the same name, but any number may have none. */

/* May the device have the name in its row? ERR_EXISTS: another device has the name, and why says which. */
ERR_MUST_USE enum err names_check(
    struct store_db *db, const struct store_device *d, struct why *why);

/* Renames all but the oldest device of each name: NAME-2, NAME-3, ... Calls fn with each renamed row. */
ERR_MUST_USE enum err names_settle(struct store_db *db,
    enum err (*fn)(void *ctx, const struct store_device *d), void *ctx, struct why *why);

#endif
