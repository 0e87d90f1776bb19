#ifndef REGISTRY_INSIDE_H
#define REGISTRY_INSIDE_H
#include <pthread.h>

#include "device_status.h"
#include "messages.h"
#include "recipe.h"
#include "registry.h"
#include "report.h"
#include "x509.h"

/* Inside of the registry: shared by registry.c (rows, looking up), identify.c (who asks), access.c (access tokens), seen.c (what devices
 * last said), claims.c (keys after a restore), counts.c and device_status.c (numbers of devices, in all and by job). */

/* A data set that a device offers. */
struct registry_data {
	char name[RECIPE_NAME_MAX];
	uint64_t examples, tokens;
};

/* What a device offered and was told since the start: device_status.c. */
struct registry_told {
	uint64_t until_ms; /* by clock_ms, when the offer is forgotten; 0: there is none */
	uint64_t silent_ms; /* by clock_ms, from when on the device counts as silent; 0: it does */
	/* The device's status in each job, by the job's place: a code of device_status.c. */
	uint8_t *by_place;
	uint32_t room; /* of by_place */
	struct registry_data *data;
	size_t data_count;
	message_name *trainers;
	size_t trainer_count;
	uint64_t memory_bytes;
	bool draws; /* the device draws a share if it has more examples than a job lets it claim */
	bool by_program; /* `trainers` are evaluation programs, and the device trains nothing */
	uint64_t no_figures; /* bit i: trainers[i] does not report evaluate.figures */
};

struct registry_place {
	struct device_status counts;
	bool used;
};

struct device {
	struct registry_view view;
	struct job_label *labels;
	size_t label_count;
	double heard; /* by clock_seconds(), the last contact; NaN: none */
	uint64_t renewed_ms; /* by clock_ms, the last renewal that was no repeat; 0: none */
	uint64_t issued_ms; /* by clock_ms, the last renewal of all; 0: none */
	bool unsaved; /* view.seen, or view.row.ca_generation, is newer than in the database */
	/* The device's row was changed and could not be read since: what the device may do is not known. */
	bool doubtful;
	/* The claim of a newer key is being decided, and until then the device's key may do nothing. A key that has to wait for an answer
	 * asks again before waits_ms, by clock_ms. */
	bool claiming;
	uint64_t waits_ms;
	uint8_t noted[KEY_SPKI_LEN]; /* the key whose claim was looked at last */
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
	uint8_t owner[32]; /* identity.owner of who uses the token */
	char owner_name[64]; /* "": the token has no owner but itself */
	struct registry_token_use use; /* the last; use.at 0: never used */
	bool unsaved; /* `use` is newer than in the database */
};

/* The name, for people, of an owner that has a name or is a token. */
struct registry_owner {
	uint8_t id[32];
	char name[64];
};

/* How many devices had their last contact in one second. */
struct registry_second {
	uint64_t at; /* the second, by clock_seconds(): the wall clock may jump */
	uint64_t devices;
};
#define REGISTRY_SECONDS 512
_Static_assert(
    REGISTRY_SECONDS > REGISTRY_SEEN_SECONDS + 1, "the ring is longer than is asked for");

/* Sorted arrays: joins are rare, look-ups are binary searches. */
struct registry {
	struct store *store;
	/* The state comes from a backup: keys that devices got after it are not known. */
	bool restored;
	/* Held while registry_follow reads a row and takes it over; taken before `lock` and before the store's reader. */
	pthread_mutex_t following;
	pthread_mutex_t lock;
	struct device **items;
	size_t count, room;
	bool doubts; /* some devices may be doubtful */
	bool renewed; /* a device's ca_generation has changed since registry_has_renewed */
	struct registry_key *keys;
	size_t key_count, key_room;
	struct registry_access *access;
	size_t access_count, access_room;
	struct registry_owner *owners; /* of access tokens; sorted */
	size_t owner_count, owner_room;
	/* The CAs whose certificates are accepted, oldest first; none in tests: then all certificates are. */
	struct {
		uint8_t key[X509_KEY_ID_LEN];
		uint64_t generation;
	} ca[2];
	size_t ca_count;
	struct registry_report counts; /* all but `seen`, which is counted from `seconds` */
	struct registry_second seconds[REGISTRY_SECONDS]; /* a ring, by second modulo its length */
	struct device_status told; /* of all places together */
	struct registry_place *places; /* one for each job that has not ended */
	uint32_t place_room, place_free; /* no place below place_free is free */
	uint64_t closings; /* how often a place was closed */
};

/* The enum role of this name; ROLE_NONE if there is no such role. */
unsigned registry_role(const char *name);
/* The device of this id; NULL if there is none. With the lock held. */
struct device *registry_device(const struct registry *r, const uint8_t id[32]);
/* --- counts.c, all with the lock held */
/* Adds a device to the counts: when it joins r->items, or has changed. Takes a device from the counts: before it changes. */
void registry_counts_enter(struct registry *r, const struct device *d);
void registry_counts_leave(struct registry *r, const struct device *d);
/* Counts anew, after the CAs have changed. */
void registry_counts_ca(struct registry *r);
/* Moves a device's last contact from `before` (NaN: there was none) to `now` (NaN: it is forgotten), both by clock_seconds(). */
void registry_counts_heard(struct registry *r, double before, double now);
/* Is the device neither revoked nor left, and its certificate of an older CA than the newest? */
bool registry_counts_behind(const struct registry *r, const struct device *d);
/* --- device_status.c, all with the lock held */
/* Notes what a device offers: data sets, trainers, memory, features. */
void device_status_note_data(struct device *d, const struct offer *offer);
/* Notes a contact: a device that counts for jobs is not silent for REGISTRY_SILENT_SECONDS. Drops a device: it counts for no job until it
 * asks for a task again. */
void device_status_note_there(struct device *d);
void device_status_drop(struct registry *r, struct device *d);
void device_status_free(struct registry_told *t);
/* access.c: queues uses of tokens for registry_flush. Without the lock. */
void registry_flush_tokens(struct registry *r, struct store *store);
/* A store_done: logs it if what devices said could not be written, and frees arg. */
void registry_seen_written(void *arg, enum err e, const struct why *why);
/* The device that has or had the key with this SHA-256; NULL if there is none. */
struct device *registry_device_of_key(const struct registry *r, const uint8_t key[32]);
/* --- claims.c, the first two with the lock held */
/* For a key that is not on record, after a restore: sets who to the device that the certificate names, and who->claims if the key may claim
 * to be that device's. */
void registry_claim_note(struct registry *r, const struct x509_info *cert, struct identity *who);
/* Notes that the device's key was used. True: for the first time since a restore; then the caller calls registry_claim_store_use. */
bool registry_claim_used(struct registry *r, struct device *d);
void registry_claim_store_use(struct registry *r, const struct identity *who);

#endif
