#ifndef TRAINER_OFFER_H
#define TRAINER_OFFER_H
#include "spawner.h"

struct capabilities;
struct offer;

/*
 * What this device's trainers can do. A program that stands in for the built-in one ([trainer builtin]) is asked: it is started
 * with --offer and prints it (README.md, "In place of the built-in trainer"). One that does not answer offers nothing.
 */
#define TRAINER_OFFER_S 10 /* for the answer */

struct trainer_offer {
	const struct settings *settings;
	const struct events *events;
	const char *home; /* the agent's; may be NULL */
	const struct apart *apart; /* the user of programs; NULL: this process's */
	struct spawner *spawner; /* NULL: one for this question */
	bool (*stop)(void *context); /* give up; may be NULL */
	void *context;
};

/* Wherever settings were read: puts trainers, layers, features and memory into the device's offer, which holds what the built-in
 * trainer can do. Says in one event what a program answered, or why it offers nothing. Blocks while it is asked. */
void trainer_offer_put(struct offer *out, const struct trainer_offer *t);
/* Asks that program alone; t->events is not used. ERR_NOTFOUND if there is none or it cannot be started, ERR_TIMEOUT, ERR_LIMIT for
 * an answer past CAPABILITIES_MAX, ERR_INVALID, ERR_UNSUPPORTED if it trains nothing. */
ERR_MUST_USE enum err trainer_offer_ask(
    struct capabilities *out, const struct trainer_offer *t, struct why *why);

#endif
