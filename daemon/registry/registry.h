#ifndef REGISTRY_H
#define REGISTRY_H
#include "role.h"
#include "row.h"

struct offer;
struct select_spec;
struct services_ca;
struct store;
struct token;
struct x509_info;

/*
 * Every enrolled identity, in memory; the database is the durable copy. The registry has one lock, held for microseconds and
 * never while another lock is taken.
 */
struct registry;
struct registry_report; /* report.h */

#define REGISTRY_SEEN_SECONDS 300
/* Silent so much longer than told to wait, a device counts for no job. */
#define REGISTRY_SILENT_SECONDS 60

/* What is known of a device: its row, what it last said, and how often it reported. */
struct registry_view {
	struct store_device row;
	struct store_seen seen;
	uint64_t reports; /* accepted reports of the device that are on record */
	/* Since the coordinator started: */
	double heard_from; /* the device's first contact, by clock_seconds(); 0: none */
	/* Time since heard_from, without gaps in which the device may have been away. */
	double heard_seconds;
	uint64_t taken, aborted; /* reports accepted, tasks given back */
	/* Why the certificate was refused at the last contact: its dates, or its CA. PROBLEM_NONE: it was accepted. */
	enum problem_type locked_out;
};

ERR_MUST_USE enum err registry_new(struct registry **out, struct store *store, struct why *why);
void registry_free(struct registry *r);
/* Reads a device's row from the store and adds or replaces the device: call after a row was changed. Of two changes at a time the later
 * one stays, whichever caller comes first. If the store cannot be read, returns the store's error, and the device may do nothing (the
 * word is "unavailable") until registry_settle or another call has read its row. Blocks; not from the store thread. */
ERR_MUST_USE enum err registry_follow(struct registry *r, const uint8_t id[32]);
/* Tries again to read the rows that registry_follow could not read. Call now and then. Blocks; not from the store thread. */
void registry_settle(struct registry *r);
/* Adds or replaces a device by this row. */
ERR_MUST_USE enum err registry_put(struct registry *r, const struct store_device *row);
/* Forgets a key that store_key_prune has deleted; the first key of a device is never forgotten. */
void registry_drop_key(struct registry *r, const uint8_t key[32]);
ERR_MUST_USE enum err registry_get(
    struct registry *r, const uint8_t id[32], struct registry_view *out);
/* Finds a device by hex id or by name, active and suspended devices first; ERR_NOTFOUND, ERR_EXISTS if the name is not unique. */
ERR_MUST_USE enum err registry_find(
    struct registry *r, const char *text, struct registry_view *out);
/* Calls fn for each device from this id on (NULL: each), in id order, without the lock. */
ERR_MUST_USE enum err registry_each(struct registry *r, const uint8_t *from,
    enum err (*fn)(void *ctx, const struct registry_view *v), void *ctx);
/* Is the device active? (The transaction that accepts a delta asks again.) */
bool registry_is_active(struct registry *r, const uint8_t id[32]);
/* Does the device match a job's labels and device list? */
bool registry_matches(struct registry *r, const uint8_t id[32], const struct select_spec *select);
void registry_report(struct registry *r, struct registry_report *out);

/* --- identify.c */

/* The problem with which a device that is not active is refused, by its state. */
enum problem_type registry_state_problem(enum device_state state);
/* The name of the first role in the set; "" if there is none. */
const char *registry_role_name(unsigned set);
/* Decides which roles a certificate gives: fills who->device, owner, spki, roles, problem. The device is found by the certificate's key. */
void registry_identify(
    struct registry *r, const struct x509_info *cert, double now, struct identity *who);

/* --- claims.c: after a restore, a newer key of a device claims to replace the backup's (who->claims) */

/* Begins to decide a claim: until its end the device's present key may do nothing; *used: the present key was used since the restore.
 * False: another claim is being decided. */
bool registry_claim_begin(struct registry *r, const uint8_t id[32], bool *used);
/* Ends deciding the claim of key spki: it is decided, and registry_follow was called; or, with `waits`, the key has to ask again. */
void registry_claim_end(
    struct registry *r, const uint8_t id[32], const uint8_t spki[KEY_SPKI_LEN], bool waits);

/* Certificates of other CAs give nothing from now on, resumed and open sessions included. */
void registry_set_ca(struct registry *r, const struct services_ca *ca);
/* Does the device still use a certificate of a CA that is being replaced? */
bool registry_wants_renewal(struct registry *r, const uint8_t id[32]);
/* Notes that the device works with a certificate of this CA generation (identity.generation), and does not only try it out: that is how
 * `ca status` knows who would be locked out when the CA before goes. */
void registry_note_generation(struct registry *r, const uint8_t id[32], uint64_t generation);

/* --- access.c: access tokens, used in place of a certificate */

/* Adds or replaces an access token, after its row is durable; does nothing with a join token. */
ERR_MUST_USE enum err registry_put_token(struct registry *r, const struct store_token *t);
/* The name of an owner for people: its own, or "token:" and the token's id, or the device's name; "" for the admin socket. */
void registry_owner_name(struct registry *r, const uint8_t owner[32], char out[64]);
/* Use of an access token: registry_token_used notes one, which registry_flush writes; registry_token_use is false if there was none. */
struct registry_token_use {
	double at; /* Unix seconds */
	char address[64];
};
void registry_token_used(struct registry *r, const uint8_t id[8], const char *address);
bool registry_token_use(struct registry *r, const uint8_t id[8], struct registry_token_use *out);
/* owner: the identity.owner of an access token. False: there is no such access token. */
bool registry_token_owner(struct registry *r, const uint8_t id[8], uint8_t owner[32]);
/* Decides which roles an access token gives: fills who->token, owner, roles, problem. */
void registry_identify_token(
    struct registry *r, const struct token *t, double now, struct identity *who);

/* --- seen.c */

/* Is this the row of an erased device? Then nothing that the device says or does is noted any more. */
bool registry_is_erased(const struct store_device *row);
/* Makes `row` that of an erased device. */
void registry_erase(struct store_device *row);
/* Notes a contact; agent and reason may be NULL. */
void registry_touch(
    struct registry *r, const uint8_t id[32], const char *agent, const char *reason);
/* Forgets what a device has said, and the number of its reports. */
void registry_forget(struct registry *r, const uint8_t id[32]);
void registry_count_report(struct registry *r, const uint8_t id[32]);
/* Notes what an offer (a request for a task) says of the device. True: the device's key is seen on a second machine for the first time. */
bool registry_note_offer(struct registry *r, const uint8_t id[32], const struct offer *offer);
/* Notes the last problem that a device was answered with; the last reason why a device gave up a task. */
void registry_note_refusal(struct registry *r, const uint8_t id[32], enum problem_type problem);
void registry_note_abort(struct registry *r, const uint8_t id[32], const char *reason);
/* Notes that the device has renewed its certificate. False: a repeat, less than `seconds` after the last renewal that was no repeat. */
bool registry_note_renewal(struct registry *r, const uint8_t id[32], uint64_t seconds);
/* Has the device renewed its certificate a moment ago, and may be about to try it out? */
bool registry_tries_out(struct registry *r, const uint8_t id[32]);
/* Forgets the device's machines, after it got a new key. */
void registry_forget_machines(struct registry *r, const uint8_t id[32]);
/* Has a device changed to another CA since the last call? Then a flush is worth while: "ca status" reads the database. */
bool registry_has_renewed(struct registry *r);
/* Queues the writing of what devices said and of uses of tokens, as far as it is new; its loss does no harm. Call now and then, and before
 * the store closes. */
void registry_flush(struct registry *r, struct store *store);

#endif
