#ifndef APART_H
#define APART_H
#include <limits.h>
#include <stdint.h>

#include "user.h"

/*
 * Runs the owner's programs as a user of their own, rivulet-trainer, where the service manager allows it (docs/security.md, A user of its
 * own for trainers). The agent has no rights and asks; its spawner pool (spawner_pool.h), which alone has the rights of user.h, acts. User and
 * directory are fixed and found once, at the start. A request is a verb and at most two names of directories below that directory; a
 * process that has become the user carries it out.
 */
#define APART_USER "rivulet-trainer"
#define APART_PLACE "/var/lib/rivulet-trainer"
#define APART_NAME_MAX 192

struct apart {
	struct user user;
	char place[PATH_MAX]; /* of this agent: APART_PLACE and its user's name */
	int fd; /* `place`, open and locked */
	int pool; /* socket to the spawner pool, set by spawner_pool_init; below 0 when the pool has ended */
};

enum apart_verb {
	APART_SPAWNER, /* become a spawner: the protocol of spawner.h follows */
	APART_EMPTY, /* remove all that is in a directory of work/ */
	APART_SHOW, /* let the agent read the files in a directory of work/ */
	APART_CACHE, /* make the directory for temporary files in a directory of trainers/ anew */
};

struct apart_ask {
	uint32_t verb; /* enum apart_verb */
	/* below: a directory in `name`; "": none. */
	char name[APART_NAME_MAX], below[APART_NAME_MAX];
};

/* Finds user and directory, and makes work/ and trainers/. `why` says what a person has to do after an error. apart_deinit is due after
 * success. */
ERR_MUST_USE enum err apart_init(struct apart *a, struct why *why);
void apart_deinit(struct apart *a);
/* Carries a request (not APART_SPAWNER) out, in a new process of the spawner pool; the answer, an enum err, goes to fd. */
_Noreturn void apart_serve(int fd, const struct apart *a, const struct apart_ask *ask);

/* ERR_DENIED for a home that others than its owner may enter: its mode alone keeps the programs' user out. a may be NULL. */
ERR_MUST_USE enum err apart_check_home(const struct apart *a, const char *home, struct why *why);
/* The directory in which programs find their tasks and caches: a->place, or `home` if a is NULL (programs have the agent's user). */
const char *apart_base(const struct apart *a, const char *home);
/* Requests to the spawner pool. directory: one that the agent made, place/work/NAME or place/work/NAME/BELOW; a missing one is fine. They
 * do nothing if a is NULL. ERR_TIMEOUT: the pool did not answer. */
ERR_MUST_USE enum err apart_empty(const struct apart *a, const char *directory, struct why *why);
ERR_MUST_USE enum err apart_show(const struct apart *a, const char *directory, struct why *why);
ERR_MUST_USE enum err apart_cache(const struct apart *a, const char *trainer, struct why *why);
/* Lets the programs' user read the agent's open directory and the files in it; change: also change them. Does nothing if a is NULL. */
ERR_MUST_USE enum err apart_give(
    const struct apart *a, int directory, bool change, struct why *why);
/* apart_give by the path of a directory whose parent belongs to the agent. */
ERR_MUST_USE enum err apart_give_path(
    const struct apart *a, const char *directory, bool change, struct why *why);

#endif
