#ifndef TENSORS_FILE_H
#define TENSORS_FILE_H
#include "tensor.h"

/* Rows of a tensor that are made when they are asked for. */
struct tensors_file_rows {
	void (*copy)(const void *context, uint32_t row, void *out);
	const void *context; /* not owned */
};

/* Bytes of a tensor that lie elsewhere. */
struct tensors_file_bytes {
	/* len bytes of `tensor` from its byte `at` on. */
	enum err (*read)(
	    const void *context, const struct tensor *tensor, uint64_t at, size_t len, void *out);
	const void *context; /* not owned */
	const struct tensor *tensor; /* neither */
};

/* Arrays as a safetensors file that a program reads. */
struct tensors_file {
	struct tensor_table table;
	struct tensors_file_part {
		const void *data; /* not owned; NULL: */
		struct tensors_file_rows rows; /* copy is NULL: */
		struct tensors_file_bytes bytes;
	} * parts; /* of each tensor */
};

/* For at most `most` tensors. ERR_NOMEM. */
ERR_MUST_USE enum err tensors_file_init(struct tensors_file *f, size_t most);
void tensors_file_deinit(struct tensors_file *f);
/* The next one: name, dtype, dims and shape of `like` count, and so many elements are at data, which must live as long as *f. */
void tensors_file_add(struct tensors_file *f, const struct tensor *like, const void *data);
/* The same of rows, of which the first dimension says how many there are. */
void tensors_file_add_rows(
    struct tensors_file *f, const struct tensor *like, const struct tensors_file_rows *rows);
/* The same of bytes->tensor. */
void tensors_file_add_bytes(struct tensors_file *f, const struct tensors_file_bytes *bytes);
/* The file's length. */
ERR_MUST_USE enum err tensors_file_bytes(
    const struct tensors_file *f, uint64_t *out, struct why *why);
/* The SHA-256 of its bytes, in hex. */
ERR_MUST_USE enum err tensors_file_hash(
    const struct tensors_file *f, char hex[65], struct why *why);
/* Writes it to an empty file; `path` stands in errors. */
ERR_MUST_USE enum err tensors_file_put(
    const struct tensors_file *f, int fd, const char *path, struct why *why);
/* Makes the file, which must not be there. */
ERR_MUST_USE enum err tensors_file_write(
    const struct tensors_file *f, const char *path, struct why *why);

#endif
