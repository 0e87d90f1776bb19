#ifndef CONTACT_H
#define CONTACT_H
#include <stdbool.h>

#include "err.h"

/* Of a command that stays beside a coordinator: one that answered once and is away then, as while it starts anew, is waited for. Zeros
 * are the beginning. */
struct cmd_contact {
	bool met, away;
};

/* Takes what a call gave. ERR_CLOSED of a coordinator that answered before becomes ERR_OK with `away`: ask again after CMD_CONTACT_US.
 * When it goes and when it is back is said on standard error, once each. */
#define CMD_CONTACT_US 1000000
ERR_MUST_USE enum err cmd_contact_note(struct cmd_contact *c, enum err e, const struct why *why);

#endif
