#ifndef CLAIM_H
#define CLAIM_H
#include "exchange.h"

struct store_db;
struct store_device;

/* Deciding which key is a device's after a restore from a backup: README.md has the rules. */

/* ROUTE_CLAIM: decides on a request with identity.claims, then the request is routed anew. */
extern const struct stream_ops claim_stream;

/* POST /v1/devices/{device}/rekey and .../rekey/{key}: an administrator says which key is the device's. */
void claim_rekey(struct exchange *x);
/* Adds to v "key", the fingerprint of the device's present key, and "claims", those of keys that claim to be the device's. Blocks. */
void claim_describe(struct json *v, const struct services *s, const struct store_device *row);

/* Most claiming keys of one device that are noted. */
#define CLAIM_MAX 8
/* Makes spki the key in the row and notes keys as a rotation does; the key is at least as old as issued_at (Unix seconds). The caller puts
 * the row. In a transaction. */
ERR_MUST_USE enum err claim_replace(struct store_db *db, struct store_device *row,
    const uint8_t spki[KEY_SPKI_LEN], double issued_at);
/* Appends the row's new key to the audit log, as after a rotation. by: who decided. */
ERR_MUST_USE enum err claim_audit(struct store_db *db, const struct services *s,
    const struct store_device *row, const char *by, struct why *why);
#endif
