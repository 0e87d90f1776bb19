#ifndef AFTER_FILE_H
#define AFTER_FILE_H
#include "report_file.h"

#define AFTER_FILE_KEEP "keep.safetensors"

/* The tensors that a program leaves, matched by name: a framework may have written them in another order. */

/* Puts the tensors of the delta and the local ones into w->weights, or notes in w->files where they lie, from the files in the open
 * directory that the report names. ERR_NOTFOUND if a file is missing; ERR_INVALID for a tensor that is missing, in two files, or of another
 * type or shape than in the base, and for a file that is a link, not a regular file, or has other names. */
ERR_MUST_USE enum err after_file_take(
    struct work *w, int directory, const struct report_file *report, struct why *why);
/* Keeps keep.safetensors, if the program left one in the open directory, for the program's next task of the job, in `home`. Errors as
 * program_state_keep, and for the file as after_file_take. */
ERR_MUST_USE enum err after_file_keep(
    const struct work *w, int directory, const char *home, uint64_t max_bytes, struct why *why);

#endif
