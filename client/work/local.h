#ifndef LOCAL_H
#define LOCAL_H
#include "work.h"

/*
 * Tensors that a job marks "local": trained here, kept here between rounds, never sent. HOME/local/JOB.weights holds
 * "RVL1", u32 zero, u64 length, then their bytes in the model's order. Losing the file means starting from the model's.
 */

/* Before anything else here: removes what a killed write left, and files of jobs for which none was written for a year. Makes no
 * directory. */
ERR_MUST_USE enum err local_init(const char *home, struct why *why);
/* Puts what an earlier round left over the base model's values. A missing or unfitting file changes nothing. */
void local_load(struct work *w, const char *home);
/* Keeps the present values; does nothing for a job without such tensors. */
ERR_MUST_USE enum err local_save(const struct work *w, const char *home, struct why *why);

#endif
