#ifndef CHANGED_H
#define CHANGED_H
#include <stdbool.h>
#include <stdint.h>

struct cmd_admin;

/* Between two looks of a command that keeps asking a coordinator about its jobs: until one of them has changed (docs/api.md, Changes).
 * Zeros are the beginning: the first wait is short, since the coordinator has to say first where it is. */
struct cmd_changed {
	uint64_t after;
	bool untold; /* an older coordinator, or one that does not tell us */
};

struct cmd_changed_pause {
	uint32_t poll_ms; /* between two looks where nothing is told */
	uint32_t
	    most_s; /* the longest wait for a change, 50 at most: for what changes and is no change of a job */
};
#define CMD_CHANGED_LEAST_MS \
	500 /* between two looks, or poll_ms if that is longer, however often jobs change */
#define CMD_CHANGED_FULL_MS \
	2000 /* between two looks while the coordinator has no place for us to wait */
/* away: the coordinator does not answer at all (contact.h); then waits CMD_CONTACT_US. Failures are left to the next look. */
void cmd_changed_wait(
    struct cmd_admin *a, struct cmd_changed *c, bool away, const struct cmd_changed_pause *p);

#endif
