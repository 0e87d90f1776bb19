#ifndef EXPORT_H
#define EXPORT_H
#include "recipe.h"

/* Writes the built-in network of a recipe, with the weights of a safetensors file, as an ONNX file (onnx.h). Blocks on the disk. */
ERR_MUST_USE enum err cmd_export_onnx(
    const struct recipe *r, const char *name, const char *model, const char *to, struct why *why);

#endif
