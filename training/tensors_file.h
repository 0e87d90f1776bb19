#ifndef TENSORS_FILE_H
#define TENSORS_FILE_H
#include "tensor.h"

/* Rows of a tensor that are made one by one when the file is written. */
struct tensors_file_rows {
	void (*copy)(const void *context, uint32_t row, void *out);
	const void *context; /* not owned */
};

/* A tensor whose bytes are read from elsewhere when the file is written. */
struct tensors_file_bytes {
	/* Copies len bytes of `tensor`, from its byte `at` on, to out. */
	enum err (*read)(
	    const void *context, const struct tensor *tensor, uint64_t at, size_t len, void *out);
	const void *context; /* not owned */
	const struct tensor *tensor; /* not owned */
};

/* Arrays as a safetensors file that a program reads. */
struct tensors_file {
	struct tensor_table table;
	struct tensors_file_part {
		const void *data; /* not owned; NULL: use rows */
		struct tensors_file_rows rows; /* rows.copy is NULL: use bytes */
		struct tensors_file_bytes bytes;
	} * parts; /* where the bytes of each tensor are */
};

/* Makes an empty file for at most `most` tensors. ERR_NOMEM. */
ERR_MUST_USE enum err tensors_file_init(struct tensors_file *f, size_t most);
void tensors_file_deinit(struct tensors_file *f);
/* Adds a tensor with name, dtype, dims and shape of `like`; its elements are at data, which must live as long as *f. */
void tensors_file_add(struct tensors_file *f, const struct tensor *like, const void *data);
/* Adds a tensor whose rows are made by rows->copy; the first dimension is the number of rows. */
void tensors_file_add_rows(
    struct tensors_file *f, const struct tensor *like, const struct tensors_file_rows *rows);
/* Adds bytes->tensor, whose bytes are read by bytes->read. */
void tensors_file_add_bytes(struct tensors_file *f, const struct tensors_file_bytes *bytes);
/* *out: the length of the file in bytes. */
ERR_MUST_USE enum err tensors_file_bytes(
    const struct tensors_file *f, uint64_t *out, struct why *why);
/* hex: the SHA-256 of the file's bytes. */
ERR_MUST_USE enum err tensors_file_hash(
    const struct tensors_file *f, char hex[65], struct why *why);
/* Writes the file to the empty fd; `path` is its name in errors. */
ERR_MUST_USE enum err tensors_file_put(
    const struct tensors_file *f, int fd, const char *path, struct why *why);
/* Makes the file at path, which must not exist, and writes it. */
ERR_MUST_USE enum err tensors_file_write(
    const struct tensors_file *f, const char *path, struct why *why);

#endif
