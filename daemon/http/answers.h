#ifndef ANSWERS_H
#define ANSWERS_H
#include "exchange.h"

/*
 * A switch for tests: keeps what the coordinator answered, so that it can be compared with docs/openapi.yaml. On if the environment has
 * RIVULET_KEEP_ANSWERS=DIRECTORY when the program starts, which no unit and no package sets; the log warns of it, for answers hold what
 * their readers may know. Without it nothing is made and nothing is looked at.
 *
 * DIRECTORY/PROCESS.jsonl gets a line for each answer that shows something which the process has not answered before: for a verb, a route,
 * a status and a role another member, another type of one, or another word.
 *     {"verb", "path", "status", "role", "type", "headers": [NAME], "body": as it was sent}
 * `type` is "" of an answer without a body; `body` is there of JSON alone.
 */
struct answers;

/* *out: NULL if the environment does not ask for it, or if the file cannot be made, which the log says. */
void answers_open(struct answers **out);
void answers_free(struct answers *a);
/* Notes the response, or the next piece of its list, before it is sent. *list: what came of the list so far; NULL at first. Any
 * thread. */
void answers_keep(struct answers *a, struct buf **list, const struct exchange *x);
/* Drops a list that was not sent to its end. */
void answers_drop(struct buf **list);

#endif
