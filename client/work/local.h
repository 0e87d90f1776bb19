#ifndef LOCAL_H
#define LOCAL_H
#include "work.h"

/*
 * Tensors that a job marks "local": trained here, kept here between rounds, never sent. HOME/local/JOB.weights (RVL1 of FORMAT.md)
 * holds them. Losing the file means starting from the model's.
 */

/* Called before the other functions: removes what an interrupted write left, and files that were not written for a year. Makes no
 * directory. */
ERR_MUST_USE enum err local_init(const char *home, struct why *why);
/* Replaces the base model's values of local tensors by those that an earlier round kept; without a file they stay. A file of a version
 * without hashes is written anew with a hash. ERR_CORRUPT: the file is damaged or of another model; ERR_IO, ... An error changes
 * nothing. */
ERR_MUST_USE enum err local_load(struct work *w, const char *home, struct why *why);
/* Keeps the present values of local tensors; does nothing for a job without such tensors. */
ERR_MUST_USE enum err local_save(const struct work *w, const char *home, struct why *why);

#endif
