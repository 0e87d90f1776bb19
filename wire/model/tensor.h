#ifndef TENSOR_H
#define TENSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * The table of tensors of one model: names, types, shapes, where their bytes lie in the data section of a model
 * file, and which of them make up the delta vector.
 *
 * The delta vector is the concatenation, in ascending data_offsets order, of all tensors with role TRAIN or
 * AVERAGE (always F32). A table from outside is complete and checked, or it is not returned.
 */
#define TENSOR_NAME_MAX 128
#define TENSOR_DIMS_MAX 8
#define TENSOR_COUNT_MAX 4096
#define TENSOR_MATCH_MAX (1u << 24)
/* The most bytes of a data section. Where size_t is short the limit is so low that the lengths of sixteen such sections together fit. */
#define TENSOR_BYTES_MAX \
	(SIZE_MAX / 16 < (uint64_t)1 << 48 ? (uint64_t)(SIZE_MAX / 16 + 1) : (uint64_t)1 << 48)

enum tensor_dtype {
	TENSOR_F32,
	TENSOR_F64,
	TENSOR_F16,
	TENSOR_BF16,
	TENSOR_I8,
	TENSOR_U8,
	TENSOR_I16,
	TENSOR_U16,
	TENSOR_I32,
	TENSOR_U32,
	TENSOR_I64,
	TENSOR_U64,
	TENSOR_BOOL,
};

enum tensor_role {
	TENSOR_TRAIN, /* trained; the server optimizer moves it */
	TENSOR_AVERAGE, /* plain mean of what the devices have (running statistics) */
	TENSOR_FROZEN, /* carried unchanged */
	TENSOR_LOCAL, /* never leaves the device; carried unchanged in the model file */
};

struct tensor {
	char name[TENSOR_NAME_MAX];
	enum tensor_dtype dtype;
	enum tensor_role role;
	unsigned dims;
	uint64_t shape[TENSOR_DIMS_MAX];
	uint64_t elements; /* product of shape; 1 for a scalar */
	uint64_t begin, end; /* bytes within the data section */
	/* Index of its first element in the delta vector; meaningless unless in_delta. */
	uint64_t first;
	bool in_delta;
};

struct tensor_table {
	struct tensor *items; /* ascending begin, contiguous, no gaps */
	size_t count;
	uint64_t elements; /* length of the delta vector */
	uint64_t bytes; /* of the data section */
};

/* Gives a role to every tensor whose name matches the pattern; '*' matches any run of characters. The first rule that matches wins;
 * a tensor that no rule matches is TRAIN if F32, else FROZEN. */
struct tensor_rule {
	char pattern[TENSOR_NAME_MAX];
	enum tensor_role role;
};

size_t tensor_dtype_size(enum tensor_dtype dtype);
const char *tensor_dtype_name(enum tensor_dtype dtype); /* safetensors spelling: "F32", ... */
bool tensor_dtype_find(const char *name, enum tensor_dtype *out);
const char *tensor_role_name(enum tensor_role role);

/* Fills name, type, shape and elements; offsets are zero, the role is the default for the type. ERR_INVALID for a name
 * that is empty, holds control characters or is "__metadata__"; ERR_LIMIT for a name, dims or a size past the limits. */
ERR_MUST_USE enum err tensor_init(struct tensor *out, const char *name, enum tensor_dtype dtype,
    const uint64_t *shape, unsigned dims, struct why *why);
/* Bytes that the tensor takes in the data section; at most TENSOR_BYTES_MAX. */
uint64_t tensor_bytes(const struct tensor *t);

/* Appends an F32 tensor behind the last one, with role TRAIN. ERR_EXISTS for a name used twice,
 * ERR_LIMIT past TENSOR_COUNT_MAX or on overflow. */
ERR_MUST_USE enum err tensor_table_add(struct tensor_table *t, const char *name,
    const uint64_t *shape, unsigned dims, struct why *why);
/* Bounds the cost of matching for a new job: bytes of all patterns (a pattern without '*' counts as 1) times bytes of all names. ERR_LIMIT
 * above TENSOR_MATCH_MAX. */
ERR_MUST_USE enum err tensor_table_bound(const struct tensor_table *t,
    const struct tensor_rule *rules, size_t rule_count, struct why *why);
/* The role that the rules give the tensor, whatever t->role says. */
enum tensor_role tensor_role_of(
    const struct tensor *t, const struct tensor_rule *rules, size_t rule_count);
/* Sets roles and from them `in_delta`, `first` and `elements`. ERR_INVALID if a TRAIN or AVERAGE tensor is not F32;
 * the table is then unchanged. */
ERR_MUST_USE enum err tensor_table_assign(
    struct tensor_table *t, const struct tensor_rule *rules, size_t rule_count, struct why *why);
/* The first rule that fits no tensor at all; NULL if there is none. */
const struct tensor_rule *tensor_table_unused(
    const struct tensor_table *t, const struct tensor_rule *rules, size_t rule_count);
const struct tensor *tensor_table_find(const struct tensor_table *t, const char *name);
/* Same name, type and shape? */
bool tensor_same(const struct tensor *a, const struct tensor *b);
/* Has `have` exactly the tensors of `want`, in any order? ERR_INVALID names the first that is missing, has another shape or type, or is in
 * `have` alone. */
ERR_MUST_USE enum err tensor_table_fits(
    const struct tensor_table *want, const struct tensor_table *have, struct why *why);
/* The prefixes that PyTorch's wrappers put before the names of a state_dict; NULL-terminated. */
const char *const *tensor_wrappers(void);
/* Is every number of this F32 tensor finite? data: the data section. Reads the tensor from front to back. */
bool tensor_is_finite(const struct tensor *t, const void *data);
/* Checks a tensor of a job's first model: ERR_INVALID names an F32 tensor that is trained or averaged and not finite. ERR_OK for other
 * types and for roles that carry the tensor unchanged. */
ERR_MUST_USE enum err tensor_check_finite(
    const struct tensor *t, enum tensor_role role, const void *data, struct why *why);
/* Same names, types, shapes and order? */
bool tensor_table_same(const struct tensor_table *a, const struct tensor_table *b);
/* The part of a range of the delta vector that lies in one tensor: `count` elements from element `first` of the vector on, which begin at
 * byte `at` of the data section. */
struct tensor_piece {
	const struct tensor *tensor;
	uint64_t first, at;
	size_t count;
};
/* Finds the next piece of elements [first, first + count), in ascending order; false if there is none. *i, which the caller sets to 0
 * before the first call, is where the search goes on. */
bool tensor_table_piece(const struct tensor_table *t, size_t *i, uint64_t first, size_t count,
    struct tensor_piece *out);
ERR_MUST_USE enum err tensor_table_copy(struct tensor_table *out, const struct tensor_table *in);
void tensor_table_deinit(struct tensor_table *t);

#endif
