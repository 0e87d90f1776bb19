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
	/* 32 bytes: the device that the detail is about, and with which it is erased; NULL: no device. */
	const uint8_t *device;
	const void *data;
	size_t len;
};
struct audit_event {
	enum record_event event;
	const uint8_t *job; /* 16 bytes, or NULL */
	uint64_t round; /* with a job; else 0 */
	/* A JSON object whose members go into the body, which everybody may see, or NULL; audit_append frees it. */
	struct json *facts;
	const uint8_t *device; /* 32 bytes: the device that `detail` is about; NULL: none */
	/* A JSON object, or NULL; audit_append frees it. With a device, the device's id is added as "device". */
	struct json *detail;
	const struct audit_item *items; /* further details, behind `detail` */
	size_t item_count;
};
ERR_MUST_USE enum err audit_append(struct store_db *db, const struct services *s,
    const struct audit_event *event, struct why *why);

/* Appends token.created or token.revoked. The token's labels, and by whom (NULL: not known), are details. */
ERR_MUST_USE enum err audit_token(struct store_db *db, const struct services *s,
    enum record_event event, const struct store_token *t, const char *by, struct why *why);

/* Appends device.changed, whose detail holds name and labels as they are now, and by whom they were changed. */
ERR_MUST_USE enum err audit_device(struct store_db *db, const struct services *s,
    const struct store_device *d, const char *by, struct why *why);

/*
 * Refusals are counted by error word and appended as one entry "refused" every [audit] refusals_s seconds in which there were
 * any, and at the end. Any thread.
 */
struct audit;
ERR_MUST_USE enum err audit_new(struct audit **out, const struct services *s);
/* Before the store closes, and when no other thread gives the store work any more: waits for queued work, in which more refusals may be
 * counted, then appends the counts. NULL is legal. */
void audit_free(struct audit *a);
/* Counts a refusal; a NULL (in tests): nothing is counted. */
void audit_refused(struct audit *a, enum problem_type problem);
/* Queues the entry if [audit] refusals_s seconds have passed; does not wait for the store. */
void audit_tick(struct audit *a);

#endif
