#ifndef REGISTRY_INSIDE_H
#define REGISTRY_INSIDE_H
#include <pthread.h>

#include "messages.h"
#include "recipe.h"
#include "registry.h"
#include "report.h"
#include "standing.h"
#include "x509.h"

/* Inside of the registry: shared by registry.c (rows, looking up), registry_identify.c (who asks), registry_access.c
 * (access tokens) and registry_seen.c (what devices were heard to say). */

/* A data set that a device offers. */
struct registry_data {
	char name[RECIPE_NAME_MAX];
	uint64_t examples, tokens;
};

/* What a device offered and was told since the start: standing.c. */
struct registry_told {
	uint64_t
	    until_ms; /* by clock_ms, its offer is forgotten then; 0: it was not heard of lately */
	uint64_t silent_ms; /* by clock_ms, it is silent then; 0: it is */
	uint8_t *by_place; /* how it stands to jobs */
	uint32_t room;
	struct registry_data *data;
	size_t data_count;
	message_name *trainers;
	size_t trainer_count;
	uint64_t memory_bytes;
	bool draws; /* a share, where it has more examples than a job lets it claim */
	bool by_program; /* they are what a program evaluates, and nothing is trained here */
	uint64_t no_figures; /* trainers that do not give them, a bit each */
};

struct registry_place {
	struct standing counts;
	bool used;
};

struct device {
	struct registry_view view;
	struct job_label *labels;
	size_t label_count;
	double heard; /* by clock_seconds(), the last contact; NaN: none */
	uint64_t renewed_ms; /* by clock_ms, the last that was no repeat; 0: none */
	bool unsaved; /* view.seen, or view.row.ca_generation, is newer than its row */
	/* Its row was changed and could not be read since: nobody knows what it may. */
	bool doubtful;
	/* A newer key asks for its place: until that is decided its key may do nothing. One that has to wait for an answer asks again before
	 * waits_ms, by clock_ms. */
	bool claiming;
	uint64_t waits_ms;
	uint8_t noted[KEY_SPKI_LEN]; /* the last key that did */
	struct registry_told told;
};

/* A key that is not the first of its device. */
struct registry_key {
	uint8_t key[32]; /* SHA-256 of the SPKI */
	uint8_t device[32];
};

struct registry_access {
	uint8_t id[8], secret_hash[32];
	unsigned role;
	double expires_at;
	bool revoked;
	uint8_t owner[32]; /* whose jobs are its */
	char owner_name[64]; /* "": its own */
	struct registry_token_use use; /* at 0: never */
	bool unsaved; /* the use is newer than its row */
};

/* What people call an owner who has a name, or one that is a token. */
struct registry_owner {
	uint8_t id[32];
	char name[64];
};

/* How many devices were heard of last in one second. */
struct registry_second {
	uint64_t at; /* by clock_seconds(): the clock on the wall may jump */
	uint64_t devices;
};
#define REGISTRY_SECONDS 512
_Static_assert(
    REGISTRY_SECONDS > REGISTRY_SEEN_SECONDS + 1, "the ring is longer than is asked for");

/* Sorted arrays: joins are rare, look-ups are binary searches. */
struct registry {
	struct store *store;
	bool restored; /* from a backup: of keys that came after that nothing is known */
	/* Reading a row and taking it over; before the lock, and before the store's reader. */
	pthread_mutex_t following;
	pthread_mutex_t lock;
	struct device **items;
	size_t count, room;
	bool doubts; /* some may be doubtful */
	bool renewed; /* a device's ca_generation has changed since registry_has_renewed */
	struct registry_key *keys;
	size_t key_count, key_room;
	struct registry_access *access;
	size_t access_count, access_room;
	struct registry_owner *owners; /* of access tokens; sorted */
	size_t owner_count, owner_room;
	/* The CAs whose certificates count, oldest first; none in tests: then all do. */
	struct {
		uint8_t key[X509_KEY_ID_LEN];
		uint64_t generation;
	} ca[2];
	size_t ca_count;
	struct registry_report counts; /* `seen` apart */
	struct registry_second seconds[REGISTRY_SECONDS];
	struct registry_place *places; /* of jobs */
	uint32_t place_room, place_free; /* no place below the latter is free */
	uint64_t closings; /* of places, ever */
};

/* The bit of a role's name; ROLE_NONE for a name that is none. */
unsigned registry_role(const char *name);
/* With the lock held. */
struct device *registry_device(const struct registry *r, const uint8_t id[32]);
/* --- counts.c, all with the lock held */
/* Of a device that is about to be one of r->items, or to change; before it goes or changes it leaves. */
void registry_counts_enter(struct registry *r, const struct device *d);
void registry_counts_leave(struct registry *r, const struct device *d);
/* The CAs have changed. */
void registry_counts_ca(struct registry *r);
/* A device was heard of, by clock_seconds(); before: when it was last, or NaN; now: NaN if that is to be forgotten. */
void registry_counts_heard(struct registry *r, double before, double now);
/* Neither revoked nor left, and its certificate is of an older CA than the newest? */
bool registry_counts_behind(const struct registry *r, const struct device *d);
/* --- standing.c, all with the lock held */
/* Notes which data sets it offers. */
void standing_note_data(struct device *d, const struct offer *offer);
/* It counts no longer, until it asks again. */
void standing_note_there(struct device *d); /* it spoke */
void standing_drop(struct registry *r, struct device *d);
void standing_free(struct registry_told *t);
/* access.c: queues uses of tokens for registry_flush. Without the lock. */
void registry_flush_tokens(struct registry *r, struct store *store);
/* Says so if what was seen could not be written, and frees arg: for store_submit. */
void registry_seen_written(void *arg, enum err e, const struct why *why);
/* By SHA-256 of any key it ever had. */
struct device *registry_device_of_key(const struct registry *r, const uint8_t key[32]);
/* --- claims.c, the first two with the lock held */
/* Of a key that is nobody's: whom its certificate names, and whether it may ask for that place. */
void registry_claim_note(struct registry *r, const struct x509_info *cert, struct identity *who);
/* The device's key is used. True: for the first time since the restore, which is to be written. */
bool registry_claim_used(struct registry *r, struct device *d);
void registry_claim_store_use(struct registry *r, const struct identity *who);

#endif
