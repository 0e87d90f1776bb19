#ifndef AUDIT_H
#define AUDIT_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "problem.h"
#include "record_event.h"

struct services;
struct store_db;
struct store_device;
struct store_token;

/*
 * The audit log: a chain of entries, each signed and naming the hash of the one before (wire/message/record.h). An entry commits to
 * a body, which says what happened, and the body to salted hashes of details. Details hold what names a device; they lie
 * beside the chain and may be erased, and the chain still verifies. Appending is part of the transaction of the change
 * itself, on the store thread: either both are durable or none is.
 */
struct audit_item {
	/* 32 bytes: whom it is about, and with whom it is erased; NULL if nobody. */
	const uint8_t *device;
	const void *data;
	size_t len;
};
struct audit_event {
	enum record_event event;
	const uint8_t *job; /* 16 bytes, or NULL */
	uint64_t round; /* with a job; else 0 */
	/* An object whose members go into the body, for all to see, or NULL; taken over. */
	struct json *facts;
	const uint8_t *device; /* 32 bytes: whom the detail is about; NULL if about nobody */
	/* An object, or NULL; taken over. With a device, its id is added as "device". */
	struct json *detail;
	const struct audit_item *items; /* further details, behind that one */
	size_t item_count;
};
ERR_MUST_USE enum err audit_append(struct store_db *db, const struct services *s,
    const struct audit_event *event, struct why *why);

/* token.created or token.revoked. Its labels, and who did it (NULL: nobody known), are details. */
ERR_MUST_USE enum err audit_token(struct store_db *db, const struct services *s,
    enum record_event event, const struct store_token *t, const char *by, struct why *why);

/* device.changed: name and labels as they are now, and who changed them, are its detail. */
ERR_MUST_USE enum err audit_device(struct store_db *db, const struct services *s,
    const struct store_device *d, const char *by, struct why *why);

/*
 * Refusals are counted by error word and appended as one entry "refused" every [audit] refusals_s seconds in which there were
 * any, and at the end. Any thread.
 */
struct audit;
ERR_MUST_USE enum err audit_new(struct audit **out, const struct services *s);
/* Before the store closes, and when nobody gives it work any more: waits for what is queued, which may refuse, then appends what was
 * counted. NULL is legal. */
void audit_free(struct audit *a);
/* Without an object (a test's services) nothing is counted. */
void audit_refused(struct audit *a, enum problem_type problem);
/* Appends the counts if it is time; does not wait for the store. */
void audit_tick(struct audit *a);

#endif
