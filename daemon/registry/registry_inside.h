#ifndef REGISTRY_INSIDE_H
#define REGISTRY_INSIDE_H
#include <pthread.h>

#include "registry.h"
#include "report.h"

/* Inside of the registry: shared by registry.c (rows, looking up), registry_identify.c (who asks), registry_access.c
 * (access tokens) and registry_seen.c (what devices were heard to say). */
struct device {
	struct registry_view view;
	struct job_label *labels;
	size_t label_count;
	bool unsaved; /* view.seen, or view.row.ca_generation, is newer than its row */
	/* Its row was changed and could not be read since: nobody knows what it may. */
	bool doubtful;
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
};

/* How many devices were heard of last in one second. */
struct registry_second {
	uint64_t at; /* Unix time */
	uint64_t devices;
};
#define REGISTRY_SECONDS 512
_Static_assert(
    REGISTRY_SECONDS > REGISTRY_SEEN_SECONDS + 1, "the ring is longer than is asked for");

/* Sorted arrays: joins are rare, look-ups are binary searches. */
struct registry {
	struct store *store;
	/* Reading a row and taking it over; before the lock, and before the store's reader. */
	pthread_mutex_t following;
	pthread_mutex_t lock;
	struct device **items;
	size_t count, room;
	bool doubts; /* some may be doubtful */
	struct registry_key *keys;
	size_t key_count, key_room;
	struct registry_access *access;
	size_t access_count, access_room;
	/* The CAs whose certificates count, oldest first; none in tests: then all do. */
	struct {
		uint8_t key[X509_KEY_ID_LEN];
		uint64_t generation;
	} ca[2];
	size_t ca_count;
	struct registry_report counts; /* `seen` apart */
	struct registry_second seconds[REGISTRY_SECONDS];
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
/* A device was heard of; before: when it was last, or NaN; now: NaN if that is to be forgotten. */
void registry_counts_heard(struct registry *r, double before, double now);
/* Neither revoked nor left, and its certificate is of an older CA than the newest? */
bool registry_counts_behind(const struct registry *r, const struct device *d);
/* By SHA-256 of any key it ever had. */
struct device *registry_device_of_key(const struct registry *r, const uint8_t key[32]);

#endif
