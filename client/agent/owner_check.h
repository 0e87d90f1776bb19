#ifndef OWNER_CHECK_H
#define OWNER_CHECK_H
#include "eligibility.h"
#include "spawner.h"

/*
 * The program of [eligibility] check, confined as a trainer, of whose user it is, without a cache of its own. Exit code 0 is yes; anything else, and more than
 * OWNER_CHECK_S, is no.
 */
#define OWNER_CHECK_S 5.0

struct owner_check {
	const struct settings *settings;
	const char *home; /* the agent's */
	const struct apart *apart; /* the user of programs; NULL: this process's */
	struct spawner *spawner; /* NULL: one for each run */
	bool (*stop)(void *context); /* may be NULL */
	void *context;
};

/* An eligibility_check; its context is a struct owner_check. */
bool owner_check_ask(void *check, char said[VERDICT_TEXT_MAX]);

#endif
