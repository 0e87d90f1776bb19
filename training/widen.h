#ifndef WIDEN_H
#define WIDEN_H
#include "tensor.h"

/*
 * Training and deltas are F32. PyTorch models are often kept in half or double precision: what is trained of them must be widened (or,
 * from F64, rounded) before the file is hashed, for the hash is the model's id.
 */
struct widen_note {
	size_t widened; /* tensors */
	char first[TENSOR_NAME_MAX]; /* of them, with the type it had */
	enum tensor_dtype was;
	const char *
	    wrapper; /* what all names begin with that a wrapper of PyTorch left there; NULL: nothing */
};

/* A descriptor of the safetensors file at path, or of a copy without a name whose F16, BF16 and F64 tensors are F32. The caller closes
 * it. ERR_NUMERIC names a tensor with a finite number that is none in F32. Blocks on the disk. */
ERR_MUST_USE enum err widen_open(
    int *fd, struct widen_note *note, const char *path, struct why *why);

#endif
