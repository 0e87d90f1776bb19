#ifndef PLANNING_H
#define PLANNING_H
#include "estimate.h"

/* `rivulet job plan`. */
int cmd_planning_main(int argc, char **argv);
/* Plans and prints, as JSON or as text. *runs: false if the job cannot run, which was said. */
ERR_MUST_USE enum err cmd_planning_show(
    const struct plan_want *want, bool as_json, bool *runs, struct why *why);

#endif
