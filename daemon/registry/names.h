#ifndef NAMES_H
#define NAMES_H
#include "err.h"

struct store_db;
struct store_device;

/* A name is one device's: of all that are active or suspended no two have the same, but for those without any. */

/* May the device have the name that stands in its row? ERR_EXISTS: another one has it, and why says which. */
ERR_MUST_USE enum err names_check(
    struct store_db *db, const struct store_device *d, struct why *why);

/* Gives all but the oldest device of a name another one: NAME-2, NAME-3, ... Calls fn with each row as it is now. */
ERR_MUST_USE enum err names_settle(struct store_db *db,
    enum err (*fn)(void *ctx, const struct store_device *d), void *ctx, struct why *why);

#endif
