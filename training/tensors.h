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

/* Maps a file; F16, BF16 and F64 become F32. Reasons name the file. The caller ends *out with tensors_close, which accepts zeros. */
ERR_MUST_USE enum err tensors_open(struct tensors *out, const char *path, struct why *why);
/* tensors_open, but all types stay as they are. */
ERR_MUST_USE enum err tensors_open_plain(struct tensors *out, const char *path, struct why *why);
void tensors_close(struct tensors *t);

#endif
