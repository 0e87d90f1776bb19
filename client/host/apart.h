#ifndef APART_H
#define APART_H
#include <limits.h>
#include <stdint.h>

#include "user.h"

/*
 * Programs of the owner under a user of their own, rivulet-trainer, where the service manager lets it (docs/security.md, A user of its own
 * for trainers). Whoever asks is the agent, which has no rights; asked is its nursery (nursery.h), which alone has those of user.h. User
 * and place are fixed and found once, at the start; an ask is a verb and at most two names of directories below, and what is done for
 * it is done by a process that has become that user.
 */
#define APART_USER "rivulet-trainer"
#define APART_PLACE "/var/lib/rivulet-trainer"
#define APART_NAME_MAX 192

struct apart {
	struct user user;
	char place[PATH_MAX]; /* of this agent: APART_PLACE and its user's name */
	int fd; /* that directory, locked */
	int nursery; /* whom it asks; set by nursery_init; below 0 when it has ended */
};

enum apart_verb {
	APART_SPAWNER, /* to start a program: spawner.h speaks from there on */
	APART_EMPTY, /* remove what lies in a directory of work/ */
	APART_SHOW, /* let the agent read the files in such a directory */
	APART_CACHE, /* make the place for temporary files in a directory of trainers/ anew */
};

struct apart_ask {
	uint32_t verb; /* of enum apart_verb */
	char name[APART_NAME_MAX], below[APART_NAME_MAX]; /* below: in that; "": nothing */
};

/* Looks everything up, and makes work/ and trainers/. The reason says what is to be done about it. apart_deinit is due after success. */
ERR_MUST_USE enum err apart_init(struct apart *a, struct why *why);
void apart_deinit(struct apart *a);
/* What a new process of the nursery does for an ask (but APART_SPAWNER): the answer goes to fd, an enum err. */
_Noreturn void apart_serve(int fd, const struct apart *a, const struct apart_ask *ask);

/* ERR_DENIED for a home that others than its owner may enter: its mode alone keeps the other user out. a may be NULL. */
ERR_MUST_USE enum err apart_check_home(const struct apart *a, const char *home, struct why *why);
/* Where an agent's programs find their tasks and caches: a is NULL where they have the agent's user. */
const char *apart_base(const struct apart *a, const char *home);
/* The directory is one that the agent made: place/work/NAME, or that and /BELOW. All these do nothing where a is NULL. ERR_TIMEOUT:
 * nobody answered. Something that is not there is fine. */
ERR_MUST_USE enum err apart_empty(const struct apart *a, const char *directory, struct why *why);
ERR_MUST_USE enum err apart_show(const struct apart *a, const char *directory, struct why *why);
ERR_MUST_USE enum err apart_cache(const struct apart *a, const char *trainer, struct why *why);
/* The other user may read the agent's open directory and the files in it, or change them, too. */
ERR_MUST_USE enum err apart_give(
    const struct apart *a, int directory, bool change, struct why *why);
/* As apart_give, by the path of a directory whose parent is the agent's. */
ERR_MUST_USE enum err apart_give_path(
    const struct apart *a, const char *directory, bool change, struct why *why);

#endif
