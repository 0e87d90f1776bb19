#ifndef EXPORT_H
#define EXPORT_H
#include "recipe.h"

/* Writes the built-in network of a recipe, called name, with the weights of the safetensors file `model`, as the ONNX file `to` (onnx.h).
 * Blocks on the disk. */
ERR_MUST_USE enum err cmd_export_onnx(
    const struct recipe *r, const char *name, const char *model, const char *to, struct why *why);

#endif
