#ifndef AUDIT_H
#define AUDIT_H
#include "json.h"
#include "services.h"
#include "store.h"

/*
 * The audit log: a chain of entries, each signed and naming the hash of the one before (wire/record.h). An entry commits to
 * a body, which says what happened, and the body to salted hashes of details. Details hold what names a device; they lie
 * beside the chain and may be erased, and the chain still verifies. Appending is part of the transaction of the change
 * itself, on the store thread: either both are durable or none is.
 */
struct audit_event {
	const char *event; /* "device.joined", "device.revoked", "job.submitted", ... */
	const uint8_t *job; /* 16 bytes, or NULL */
	uint64_t round; /* with a job; else 0 */
	const uint8_t *device; /* 32 bytes: whom the detail is about; NULL if about nobody */
	struct json *detail; /* an object, or NULL; taken over */
};
ERR_MUST_USE enum err audit_append(struct store_db *db, const struct services *s,
    const struct audit_event *event, struct why *why);

#endif
