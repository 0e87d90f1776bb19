#ifndef WIDEN_H
#define WIDEN_H
#include "tensor.h"

/*
 * Training and deltas are F32. PyTorch models are often kept in half or double precision: such tensors must be widened (or,
 * from F64, rounded) before the file is hashed, for the hash is the model's id.
 */
struct widen_note {
	size_t widened; /* number of tensors whose type was changed */
	char first[TENSOR_NAME_MAX]; /* name of the first of these tensors */
	enum tensor_dtype was; /* type that this first tensor had */
	/* The prefix of a PyTorch wrapper (tensor_wrappers) with which all names begin; NULL: none. */
	const char *wrapper;
};

/* Opens the safetensors file at path, or a copy without a name whose F16, BF16 and F64 tensors are F32. The caller closes *fd. ERR_NUMERIC
 * names a tensor with a finite number that is not finite in F32. Blocks on the disk. */
ERR_MUST_USE enum err widen_open(
    int *fd, struct widen_note *note, const char *path, struct why *why);

#endif
