#ifndef FIND_H
#define FIND_H
#include "admin.h"

/*
 * Which one of many a person means: by its id, by the beginning of an id as tables show it, or by name. Of the jobs of one name the one
 * that is not over is meant, else the newest; of the devices the one that holds the name. A name that looks like the shown beginning
 * of another's id is nobody's. Fails with ERR_NOTFOUND, and ERR_INVALID if several fit.
 */
enum cmd_find_kind { CMD_FIND_JOB, CMD_FIND_DEVICE, CMD_FIND_MODEL, CMD_FIND_TOKEN };
#define CMD_FIND_ID 65 /* room for any id */

/* In a list as the coordinator gives it; models in that of the jobs. *out lives as long as the list. */
ERR_MUST_USE enum err cmd_find_in(const struct json *list, enum cmd_find_kind kind,
    const char *word, const struct json **out, struct why *why);
/* Asks the coordinator, unless the word is a whole id: then it may be of none. */
ERR_MUST_USE enum err cmd_find(struct cmd_admin *a, enum cmd_find_kind kind, const char *word,
    char id[CMD_FIND_ID], struct why *why);
/* A model id stands for itself; else the word names a job, whose present model is meant, or begins such a model's id. */
ERR_MUST_USE enum err cmd_find_model(
    struct cmd_admin *a, const char *word, char id[CMD_FIND_ID], struct why *why);

#endif
