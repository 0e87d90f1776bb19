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
 * Every enrolled identity, in memory; the database is its durable copy. One lock of its own, held for microseconds and
 * never while another is taken.
 */
struct registry;
struct registry_report; /* report.h */

#define REGISTRY_SEEN_SECONDS 300
#define REGISTRY_SILENT_SECONDS 60 /* longer than it was given, and it does not count for a job */

/* What is known of a device: its row, what it was heard to say, and how often it reported. */
struct registry_view {
	struct store_device row;
	struct store_seen seen;
	uint64_t reports; /* ever accepted and still on record */
	/* Since the coordinator started: */
	double heard_from; /* its first contact, by clock_seconds(); 0: none */
	double
	    heard_seconds; /* from then on, without the times of which nobody knows whether it was there */
	uint64_t taken, aborted; /* its reports, and tasks that it gave back */
	/* What its certificate was refused for, when it was heard of last: its dates, or its CA. PROBLEM_NONE: it is taken. */
	enum problem_type locked_out;
};

ERR_MUST_USE enum err registry_new(struct registry **out, struct store *store, struct why *why);
void registry_free(struct registry *r);
/* Adds or replaces a device by the row that is durable now: of two changes at a time the later one stays, whoever comes here
 * first. If the store cannot be read, its error; then the device may do nothing (the word is "unavailable") until registry_settle, or
 * another call, could read it. Blocks; not from the store thread. */
ERR_MUST_USE enum err registry_follow(struct registry *r, const uint8_t id[32]);
/* Reads again what registry_follow could not read. Call now and then. Blocks as it does. */
void registry_settle(struct registry *r);
/* Adds or replaces a device by this row. */
ERR_MUST_USE enum err registry_put(struct registry *r, const struct store_device *row);
/* Forgets a key that is no longer on record, and is not the first of its device. */
void registry_drop_key(struct registry *r, const uint8_t key[32]);
ERR_MUST_USE enum err registry_get(
    struct registry *r, const uint8_t id[32], struct registry_view *out);
/* By hex id or by name; ERR_NOTFOUND, ERR_EXISTS if the name is not unique. */
ERR_MUST_USE enum err registry_find(
    struct registry *r, const char *text, struct registry_view *out);
/* Calls fn for each device from this id on (NULL: each), in id order, without the lock. */
ERR_MUST_USE enum err registry_each(struct registry *r, const uint8_t *from,
    enum err (*fn)(void *ctx, const struct registry_view *v), void *ctx);
/* Is the device active? (Looked at again inside the accepting transaction.) */
bool registry_is_active(struct registry *r, const uint8_t id[32]);
/* Does the device match a job's labels and device list? */
bool registry_matches(struct registry *r, const uint8_t id[32], const struct select_spec *select);
void registry_report(struct registry *r, struct registry_report *out);

/* --- registry_identify.c */

/* What stands against a device that is not active. */
enum problem_type registry_state_problem(enum device_state state);
/* The word of the first of these roles; "": of none. */
const char *registry_role_name(unsigned set);
/* Decides what a certificate gives: fills who->device, owner, spki, roles, problem. The key leads to the device. */
void registry_identify(
    struct registry *r, const struct x509_info *cert, double now, struct identity *who);

/* --- claims.c: a key asks for the place of a restored backup's, who->claims */

/* From here on the device's present key may do nothing; *used: it did since the restore. False: another claim is being decided. */
bool registry_claim_begin(struct registry *r, const uint8_t id[32], bool *used);
/* It is decided, and registry_follow was called; waits: it is not, and the key has to ask again. */
void registry_claim_end(
    struct registry *r, const uint8_t id[32], const uint8_t spki[KEY_SPKI_LEN], bool waits);

/* Certificates of other CAs give nothing from now on, resumed and open sessions included. */
void registry_set_ca(struct registry *r, const struct services_ca *ca);
/* Does the device still use a certificate of a CA that is being replaced? */
bool registry_wants_renewal(struct registry *r, const uint8_t id[32]);
/* It works with a certificate of that generation (of identity), and not only to try it out: who keeps that one may be shut out from the
 * other. */
void registry_note_generation(struct registry *r, const uint8_t id[32], uint64_t generation);

/* --- registry_access.c: tokens that stand for a certificate */

/* Adds or replaces an access token (after its row is durable); a join token is none of ours, and fine. */
ERR_MUST_USE enum err registry_put_token(struct registry *r, const struct store_token *t);
/* What people call an owner: its name, or "token:" and the id, or the device's name; "" of the admin socket. */
void registry_owner_name(struct registry *r, const uint8_t owner[32], char out[64]);
/* Notes a use, for registry_flush to write; when the last one was: false if there was none. */
struct registry_token_use {
	double at; /* Unix seconds */
	char address[64];
};
void registry_token_used(struct registry *r, const uint8_t id[8], const char *address);
bool registry_token_use(struct registry *r, const uint8_t id[8], struct registry_token_use *out);
/* Whose jobs are an access token's. False: there is no such access token. */
bool registry_token_owner(struct registry *r, const uint8_t id[8], uint8_t owner[32]);
/* Decides what an access token gives: fills who->token, owner, roles, problem. */
void registry_identify_token(
    struct registry *r, const struct token *t, double now, struct identity *who);

/* --- registry_seen.c */

/* Was what is known of this device erased? Then nothing that it says or does is noted any more. */
bool registry_is_erased(const struct store_device *row);
/* Makes `row` that of an erased device. */
void registry_erase(struct store_device *row);
/* Notes a contact; agent and reason may be NULL. */
void registry_touch(
    struct registry *r, const uint8_t id[32], const char *agent, const char *reason);
/* Forgets what a device was heard to say, and its reports. */
void registry_forget(struct registry *r, const uint8_t id[32]);
void registry_count_report(struct registry *r, const uint8_t id[32]);
/* Notes what an offer that came just now tells. True: the device's key is now seen on a second machine for the first time. */
bool registry_note_offer(struct registry *r, const uint8_t id[32], const struct offer *offer);
/* The last problem it was answered; the last reason it gave up a task. */
void registry_note_refusal(struct registry *r, const uint8_t id[32], enum problem_type problem);
void registry_note_abort(struct registry *r, const uint8_t id[32], const char *reason);
/* It has renewed its certificate. False: a repeat, within so many seconds after one that was none. */
bool registry_note_renewal(struct registry *r, const uint8_t id[32], uint64_t seconds);
/* A new key: no machine has been seen with it. */
void registry_forget_machines(struct registry *r, const uint8_t id[32]);
/* Has a device changed over to another CA since this was asked last? Then a flush is worth while: "ca status" reads the database. */
bool registry_has_renewed(struct registry *r);
/* Queues what is not in the database yet; losing it does no harm. Call now and then, and before the store closes. */
void registry_flush(struct registry *r, struct store *store);

#endif
