#ifndef EVALSETS_H
#define EVALSETS_H
#include "evalset.h"

struct shared;

/*
 * The data sets of the configuration in force, for everyone at once: whoever checks a document and whoever evaluates a model work with
 * one copy of each, however many do so. Those of an older configuration go when nobody uses them any more. Any thread.
 */
struct evalsets;

struct evalsets_use {
	struct evalset *set;
	/* private */
	struct evalsets *owner;
	const struct config *config;
	unsigned users; /* while these are the newest, the owner is one */
};

ERR_MUST_USE enum err evalsets_new(struct evalsets **out, struct shared *config);
void evalsets_free(struct evalsets *s);
/* Those of the configuration in force, loaded anew once a file of theirs has changed; given back once. s NULL (a test's services): a set of config's for this use alone. ERR_NOMEM. */
ERR_MUST_USE enum err evalsets_take(
    struct evalsets *s, struct shared *config, struct evalsets_use **out);
void evalsets_give(struct evalsets_use *u, struct shared *config); /* NULL is legal */

#endif
