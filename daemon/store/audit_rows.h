#ifndef AUDIT_ROWS_H
#define AUDIT_ROWS_H
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct store_db;

/* The rows of the audit chain. What they mean, and who signs them, is in audit.h; results as in store.h. */
struct store_audit {
	uint64_t seq;
	uint8_t link[256];
	char *body; /* ownership as store_job.document */
	size_t body_len;
	uint8_t job[16]; /* zero: about no job */
	uint64_t round;
};
/* ERR_EXISTS */
ERR_MUST_USE enum err store_audit_insert(struct store_db *db, const struct store_audit *a);
/* The link with the highest seq; ERR_NOTFOUND in an empty chain. */
ERR_MUST_USE enum err store_audit_last(struct store_db *db, uint8_t link[256]);
ERR_MUST_USE enum err store_audit_each(struct store_db *db, uint64_t from, uint64_t limit,
    enum err (*fn)(void *ctx, const struct store_audit *a), void *ctx); /* ascending */
/* The entry about a round's end. */
ERR_MUST_USE enum err store_audit_round(
    struct store_db *db, const uint8_t job[16], uint64_t round, struct store_audit *out);

struct store_detail {
	uint64_t seq, place; /* which entry; the index in its body's list */
	uint8_t device[32]; /* whom it is about; zero: nobody */
	uint8_t salt[32];
	uint8_t *data; /* valid during the call */
	size_t len;
};
/* ERR_EXISTS; ERR_NOTFOUND if there is no such entry. */
ERR_MUST_USE enum err store_audit_detail_insert(struct store_db *db, const struct store_detail *d);
/* What says whose the entry is: its first detail, if it is no longer than STORE_SIGHT_MAX (else its data is one zero byte), and
 * those that are about the device, without data. */
#define STORE_SIGHT_MAX 8192
ERR_MUST_USE enum err store_audit_sight(struct store_db *db, uint64_t seq, const uint8_t device[32],
    enum err (*fn)(void *ctx, const struct store_detail *d), void *ctx);
ERR_MUST_USE enum err store_audit_detail_each(struct store_db *db, uint64_t seq,
    enum err (*fn)(void *ctx, const struct store_detail *d), void *ctx); /* by place */

struct store_erased {
	uint64_t details, reports;
};
/* Deletes every detail about a device, its reports with manifests and receipts, what it was heard to say and how it joined; its
 * own row stays. fn is called with the task of each report. ERR_STATE, before anything is deleted, if one of them is in an open
 * round of a running or paused job. */
ERR_MUST_USE enum err store_audit_erase(struct store_db *db, const uint8_t device[32],
    enum err (*fn)(void *ctx, const uint8_t task[16]), void *ctx, struct store_erased *out);

#endif
