#ifndef EVALSETS_H
#define EVALSETS_H
#include "evalset.h"

struct shared;

/*
 * The data sets of the configuration in force, shared by all threads: those that check a document and those that evaluate a model use one
 * copy of each set. The sets of an older configuration are freed when nobody uses them any more. Any thread.
 */
struct evalsets;

struct evalsets_use {
	struct evalset *set;
	/* private */
	struct evalsets *owner;
	const struct config *config;
	unsigned users; /* the owner is one while these are the newest sets */
};

ERR_MUST_USE enum err evalsets_new(struct evalsets **out, struct shared *config);
void evalsets_free(struct evalsets *s);
/* *out: the sets of the configuration in force, loaded anew if a file of theirs has changed; the caller gives them back once. s NULL (in
 * tests): sets for this use alone. ERR_NOMEM. */
ERR_MUST_USE enum err evalsets_take(
    struct evalsets *s, struct shared *config, struct evalsets_use **out);
void evalsets_give(struct evalsets_use *u, struct shared *config); /* NULL is legal */

#endif
