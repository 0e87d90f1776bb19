#ifndef FOLLOW_H
#define FOLLOW_H
#include "admin.h"

/* Prints one line per round of a job as it is committed, and its progress in between when standard output is a terminal, until
 * the job is over. id: 32 hex digits. ERR_STATE if the job was stopped rather than done, with the reason. With a->json each
 * line is a ROUND as JSON. A coordinator that answered once and is away then is waited for, which standard error tells. */
ERR_MUST_USE enum err cmd_follow(struct cmd_admin *a, const char *id, struct why *why);

#endif
