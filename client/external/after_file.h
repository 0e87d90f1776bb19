#ifndef AFTER_FILE_H
#define AFTER_FILE_H
#include "work.h"

/* The tensors that a program leaves, matched by name: a framework may have written them in another order. */

/* Puts those of the delta and the local ones into w->weights, from after.safetensors in the directory. ERR_NOTFOUND without it;
 * ERR_INVALID for one that is missing or of another type or shape than in the base. */
ERR_MUST_USE enum err after_file_take(struct work *w, const char *directory, struct why *why);

#endif
