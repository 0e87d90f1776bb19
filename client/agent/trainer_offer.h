#ifndef TRAINER_OFFER_H
#define TRAINER_OFFER_H
#include "spawner.h"

struct capabilities;
struct offer;

/*
 * What this device's trainers can do. A program that takes the place of the built-in trainer ([trainer builtin]) is asked: it is started
 * with --offer and prints what it can (docs/devices.md, "In place of the built-in trainer"). A program that does not answer offers nothing.
 */
#define TRAINER_OFFER_S 10 /* seconds for the program's answer */

struct trainer_offer {
	const struct settings *settings;
	const struct events *events;
	const char *home; /* the agent's; may be NULL */
	const struct apart *apart; /* the user of programs; NULL: this process's */
	struct spawner *spawner; /* starts the program; NULL: a new one */
	bool (*stop)(void *context); /* give up; may be NULL */
	void *context;
};

/* Called whenever settings were read: puts trainers, layers, features and memory into the device's offer, which begins with what the
 * built-in trainer can do. Emits one event with a program's answer, or why it offers nothing. Blocks until the program answers. */
void trainer_offer_put(struct offer *out, const struct trainer_offer *t);
/* Asks only the program of [trainer builtin]; t->events is not used. ERR_NOTFOUND if there is none or it cannot be started, ERR_TIMEOUT,
 * ERR_LIMIT for an answer longer than CAPABILITIES_MAX, ERR_INVALID, ERR_UNSUPPORTED if the program trains nothing. */
ERR_MUST_USE enum err trainer_offer_ask(
    struct capabilities *out, const struct trainer_offer *t, struct why *why);

#endif
