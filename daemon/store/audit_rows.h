#ifndef AUDIT_ROWS_H
#define AUDIT_ROWS_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct store_db;

/* The rows of the audit log's chain. What an entry means, and who signs it, is in audit.h; results as in store.h. */
struct store_audit {
	uint64_t seq;
	uint8_t link[256];
	/* Valid during the call, or owned by the caller of store_audit_round (free it) */
	char *body;
	size_t body_len;
	uint8_t job[16]; /* zero: the entry is about no job */
	uint64_t round;
};
/* ERR_EXISTS */
ERR_MUST_USE enum err store_audit_insert(struct store_db *db, const struct store_audit *a);
/* The link with the highest seq; ERR_NOTFOUND in an empty chain. */
ERR_MUST_USE enum err store_audit_last(struct store_db *db, uint8_t link[256]);
ERR_MUST_USE enum err store_audit_each(struct store_db *db, uint64_t from, uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_audit *a), void *ctx); /* ascending */
/* The newest entry about a round of the job; the caller frees out->body. ERR_NOTFOUND. */
ERR_MUST_USE enum err store_audit_round(
    struct store_db *db, const uint8_t job[16], uint64_t round, struct store_audit *out);

struct store_detail {
	/* Number of the entry; index of the detail in the list of the entry's body */
	uint64_t seq, place;
	uint8_t device[32]; /* the device that the detail is about; zero: none */
	uint8_t salt[32];
	uint8_t *data; /* valid during the call */
	size_t len;
};
/* ERR_EXISTS; ERR_NOTFOUND if there is no such entry. */
ERR_MUST_USE enum err store_audit_detail_insert(struct store_db *db, const struct store_detail *d);
/* Calls fn with what shows whether an entry concerns a device: the entry's first detail, whose data is one zero byte if longer than
 * STORE_SIGHT_MAX, and each later detail about the device, whose data is always one zero byte. */
#define STORE_SIGHT_MAX 8192
ERR_MUST_USE enum err store_audit_sight(struct store_db *db, uint64_t seq, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_detail *d), void *ctx);
ERR_MUST_USE enum err store_audit_detail_each(struct store_db *db, uint64_t seq,
    enum err (*fn)(void *ctx, const struct store_detail *d), void *ctx); /* by place */

struct store_erased {
	uint64_t details, reports;
};
/* Deletes every audit detail about a device, the device's reports with manifests and receipts, its speeds and tasks, what it was heard
 * to say, its claims and how it joined; the row in `device` stays. fn is called with the task of each report. ERR_STATE, before anything
 * is deleted, if a report is in an open round of a running or paused job. */
ERR_MUST_USE enum err store_audit_erase(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const uint8_t task[16]), void *ctx, struct store_erased *out);

#endif
