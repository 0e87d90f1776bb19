#ifndef MODELFILE_H
#define MODELFILE_H
#include "tensor.h"

struct buf;

/*
 * The safetensors container: 8 bytes little-endian header length, JSON header, data. Bytes in, table out; files
 * are the caller's. The header carries "__metadata__" {"rivulet": "1", "job": hex, "round": decimal, "base": hex},
 * all optional on reading. Without "rivulet": "1" another program wrote the file and the other keys are not ours to
 * read; unknown metadata is ignored.
 */
#define MODELFILE_HEADER_MAX (1u << 20)
#define MODELFILE_PREFIX 8
/* The most JSON values of a header: enough for the largest table and metadata. A value takes some 100 bytes of memory while it is read. */
#define MODELFILE_VALUES_MAX (1u << 16)

struct modelfile_meta {
	char job[33]; /* hex, "" if none */
	char base[65]; /* hex id of the base model, "" if none */
	uint64_t round;
};

/* Length of prefix and header together from the first 8 bytes; ERR_LIMIT, ERR_INVALID. */
ERR_MUST_USE enum err modelfile_data_at(
    const void *prefix, uint64_t file_bytes, uint64_t *data_at, struct why *why);
/* Parses the header of a file of file_bytes bytes; `head` holds its first head_len bytes, at least data_at.
 * Checks types, shapes, contiguous offsets that cover the data section exactly. ERR_UNSUPPORTED for a type that no
 * enum tensor_dtype stands for; ERR_LIMIT past the limits of tensor.h. All roles come out as the
 * default (tensor_table_assign with no rules). The caller frees *table. meta may be NULL. */
ERR_MUST_USE enum err modelfile_parse(struct tensor_table *table, struct modelfile_meta *meta,
    const void *head, size_t head_len, uint64_t file_bytes, struct why *why);
/* Appends prefix and header (padded with spaces to a multiple of 64, so that data is aligned) to out. The same
 * table and meta give the same bytes. meta may be NULL: no metadata. */
ERR_MUST_USE enum err modelfile_header(
    struct buf *out, const struct tensor_table *table, const struct modelfile_meta *meta);

/* Copies the tensors of data section `from` (table `have`) to data section `to` (table `want`), which has another order. tensor_table_fits
 * must have accepted the two tables. */
void modelfile_arrange(
    void *to, const struct tensor_table *want, const void *from, const struct tensor_table *have);

#endif
