#ifndef CONTACT_H
#define CONTACT_H
#include <stdbool.h>

#include "err.h"

/* For a command that keeps asking a coordinator: once the coordinator has answered, the command waits for it while it is unreachable, as
 * during a restart. Zeros are the beginning. */
struct cmd_contact {
	bool met, away;
};

/* Takes the result e of a call. ERR_CLOSED becomes ERR_OK with c->away if the coordinator answered before: ask again after CMD_CONTACT_US
 * microseconds. Standard error tells once when the coordinator goes, and once when it is back. */
#define CMD_CONTACT_US 1000000
ERR_MUST_USE enum err cmd_contact_note(struct cmd_contact *c, enum err e, const struct why *why);

#endif
