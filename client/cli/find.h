#ifndef FIND_H
#define FIND_H
#include "admin.h"

/*
 * Which one of many a person means: by its id, by the beginning of an id as tables show it, or by name. The coordinator decides it
 * (docs/api.md, /v1/find), for this program as for any other. Fails with ERR_NOTFOUND, and with ERR_INVALID if the word fits two things.
 */
enum cmd_find_kind {
	CMD_FIND_JOB,
	CMD_FIND_DEVICE,
	CMD_FIND_MODEL, /* by an id or its beginning */
	CMD_FIND_WEIGHTS, /* likewise, or a job's word, whose present model is meant */
	CMD_FIND_TOKEN, /* by an id or its beginning */
};
#define CMD_FIND_ID 65 /* room for any id */

/* For what a coordinator has sent, which may become a path. NULL is none. */
bool cmd_find_is_id(enum cmd_find_kind kind, const char *text);

/* Unless the word is a whole id: then it is not asked for, and may be of none. */
ERR_MUST_USE enum err cmd_find(struct cmd_admin *a, enum cmd_find_kind kind, const char *word,
    char id[CMD_FIND_ID], struct why *why);

#endif
