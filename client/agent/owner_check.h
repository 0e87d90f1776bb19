#ifndef OWNER_CHECK_H
#define OWNER_CHECK_H
#include "eligibility.h"
#include "spawner.h"

/*
 * The owner's program of [eligibility] check, which runs in a trainer's sandbox and as the trainers' user, without a cache. Exit code 0
 * means yes; any other end, or none within OWNER_CHECK_S seconds, means no.
 */
#define OWNER_CHECK_S 5.0

struct owner_check {
	const struct settings *settings;
	const char *home; /* the agent's */
	const struct apart *apart; /* the user that programs run as; NULL: the agent's */
	struct spawner *spawner; /* starts the program; NULL: a new spawner for each run */
	bool (*stop)(void *context); /* may be NULL */
	void *context;
};

/* An eligibility_check; its context is a struct owner_check. */
bool owner_check_ask(void *check, char said[VERDICT_TEXT_MAX]);

#endif
