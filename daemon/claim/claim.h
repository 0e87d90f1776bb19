#ifndef CLAIM_H
#define CLAIM_H
#include "exchange.h"

struct store_db;
struct store_device;

/* README.md says when which key counts. */

/* ROUTE_CLAIM: decides on identity.claims, then the request is routed anew. */
extern const struct stream_ops claim_stream;

/* POST /v1/devices/{device}/rekey and .../rekey/{key}: an administrator says which key is the device's. */
void claim_rekey(struct exchange *x);
/* Adds "key", the present key's fingerprint, and "claims", those of keys that ask for its place. Blocks. */
void claim_describe(struct json *v, const struct services *s, const struct store_device *row);

/* So many keys of one device are noted. */
#define CLAIM_MAX 8
/* The row's key becomes this one, as after a rotation; issued_at: no later than that. In a transaction. */
ERR_MUST_USE enum err claim_replace(struct store_db *db, struct store_device *row,
    const uint8_t spki[KEY_SPKI_LEN], double issued_at);
/* The new key in the audit log, as after a rotation. */
ERR_MUST_USE enum err claim_audit(struct store_db *db, const struct services *s,
    const struct store_device *row, const char *by, struct why *why);
#endif
