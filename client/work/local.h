#ifndef LOCAL_H
#define LOCAL_H
#include "work.h"

/*
 * Tensors that a job marks "local": trained here, kept here between rounds, never sent. HOME/local/JOB.weights (RVL1 of FORMAT.md)
 * holds them. Losing the file means starting from the model's.
 */

/* Before anything else here: removes what a killed write left, and files of jobs for which none was written for a year. Makes no
 * directory. */
ERR_MUST_USE enum err local_init(const char *home, struct why *why);
/* Puts what an earlier round left over the base model's values; without a file they stay. One from before it had a hash is written anew
 * with one. ERR_CORRUPT: the file is damaged or of another model; ERR_IO, ... Nothing is changed then. */
ERR_MUST_USE enum err local_load(struct work *w, const char *home, struct why *why);
/* Keeps the present values; does nothing for a job without such tensors. */
ERR_MUST_USE enum err local_save(const struct work *w, const char *home, struct why *why);

#endif
