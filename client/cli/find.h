#ifndef FIND_H
#define FIND_H
#include "admin.h"

/*
 * Which job, device, model or token a person's word means: an id, the beginning of an id as tables show it, or a name. The coordinator
 * decides (docs/api.md, /v1/find), for this program as for any other. ERR_NOTFOUND; ERR_INVALID if the word fits two things.
 */
enum cmd_find_kind {
	CMD_FIND_JOB,
	CMD_FIND_DEVICE,
	CMD_FIND_MODEL, /* by an id or its beginning */
	CMD_FIND_WEIGHTS, /* a model as CMD_FIND_MODEL, or a job, whose present model is meant */
	CMD_FIND_TOKEN, /* by an id or its beginning */
};
#define CMD_FIND_ID 65 /* room for any id */

/* Is the text a whole id of this kind? For texts that a coordinator has sent and that may become a path. False for NULL. */
bool cmd_find_is_id(enum cmd_find_kind kind, const char *text);

/* id: what the word means. A whole id is taken as it is, without asking whether it exists. */
ERR_MUST_USE enum err cmd_find(struct cmd_admin *a, enum cmd_find_kind kind, const char *word,
    char id[CMD_FIND_ID], struct why *why);

#endif
