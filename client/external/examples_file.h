#ifndef EXAMPLES_FILE_H
#define EXAMPLES_FILE_H
#include "dataset.h"

/*
 * A device's own examples as a safetensors file, for external trainers: a shard or a drawn set need not be worked out again
 * in another language. Tensors: "x" [n, shape...] (U8, to be divided by 255, or F32), "y" [n] (I32 class, or F32 targets
 * [n, width]), and for the validation share "validation_x", "validation_y". Not normalised: the recipe says how.
 */
ERR_MUST_USE enum err examples_file_write(const char *path, const struct dataset *train,
    const struct dataset *validation, struct why *why);

#endif
