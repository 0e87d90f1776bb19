#ifndef AFTER_FILE_H
#define AFTER_FILE_H
#include "report_file.h"

#define AFTER_FILE_KEEP "keep.safetensors"

/* The tensors that a program leaves, matched by name: a framework may have written them in another order. */

/* Puts those of the delta and the local ones into w->weights, or notes in w->files where they lie, from the files that the report names, in
 * the open directory. ERR_NOTFOUND
 * without one; ERR_INVALID for a tensor that is missing, in two files, or of another type or shape than in the base, and for a file that
 * is a link, no regular one, or has other names. */
ERR_MUST_USE enum err after_file_take(
    struct work *w, int directory, const struct report_file *report, struct why *why);
/* Keeps the program's keep.safetensors, in the open directory, for its next task of the job, as program_state_keep does, in `home`; without
 * such a file nothing. Errors as there, and for the file as above. */
ERR_MUST_USE enum err after_file_keep(
    const struct work *w, int directory, const char *home, uint64_t max_bytes, struct why *why);

#endif
