#ifndef DIVIDE_H
#define DIVIDE_H
#include "leader.h"

struct pieces;
struct site;
struct training_in;

/* Sets the task's layout: how its ranks divide it. */
ERR_MUST_USE enum err divide_task(const struct site *s, const struct training_in *in,
    struct leader_task *task, const struct pieces *pieces, struct why *why);

#endif
