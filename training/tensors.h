#ifndef TENSORS_H
#define TENSORS_H
#include "file.h"
#include "tensor.h"

/* The tensors of a safetensors file, mapped. Calls block on the disk. */
struct tensors {
	struct file_map file;
	struct tensor_table table;
	const uint8_t *data; /* the data section, aligned to nothing */
};

/* F16, BF16 and F64 have become F32. Reasons name the file. tensors_close ends it; zeros are legal. */
ERR_MUST_USE enum err tensors_open(struct tensors *out, const char *path, struct why *why);
/* The same with all types as they are. */
ERR_MUST_USE enum err tensors_open_plain(struct tensors *out, const char *path, struct why *why);
void tensors_close(struct tensors *t);

#endif
