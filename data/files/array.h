#ifndef ARRAY_H
#define ARRAY_H
#include "dataset.h"
#include "unpack.h"

/*
 * Arrays of numbers, as IDX, NPY and packed files hold them: checks a file's head against its length, and reads its values as
 * examples, labels or targets. The first dimension counts the examples.
 */
#define ARRAY_DIMS_MAX 4

struct array {
	enum dataset_type type;
	bool big_endian;
	unsigned dims; /* 1..ARRAY_DIMS_MAX */
	uint64_t size[ARRAY_DIMS_MAX];
	size_t count; /* size[0] */
	size_t features; /* product of the other sizes */
	uint64_t at; /* where the values begin in the file */
	uint64_t behind; /* bytes of the file that follow the values */
};

/* Derives count and features. ERR_INVALID, or ERR_LIMIT, if a size is 0 or larger than a limit, or if there are more values than
 * `room` bytes can hold. */
ERR_MUST_USE enum err array_check(struct array *a, uint64_t room, struct why *why);
/* Sets shape, dims and features of a set of the array's examples: {n} of up to 2 dims, {1,h,w} of 3, {c,h,w} of 4. */
void array_shape(struct dataset *d, const struct array *a);

/* Reads the examples whose indices stand in keep (ascending, unique; NULL: all) to memory: bytes unchanged, other types as floats. `io`
 * must be at the first value; other examples are skipped, and no byte may follow the last. ERR_NUMERIC, with the place, if a kept value is
 * not finite. */
ERR_MUST_USE enum err array_examples(struct dataset *out, const struct array *a, struct unpack *io,
    const uint32_t *keep, size_t keep_count, struct why *why);
/* array_examples of a file that is not compressed: the set takes the mapping over and reads values there. *file is zeroed, also after a
 * failure. */
ERR_MUST_USE enum err array_rows(struct dataset *out, const struct array *a, struct file_map *file,
    const uint32_t *keep, size_t keep_count, struct why *why);
/* Whole numbers of one dimension as classes, 0 <= class < RECIPE_CLASSES_MAX. The caller frees *labels. */
ERR_MUST_USE enum err array_labels(
    int32_t **labels, const struct array *a, struct unpack *io, struct why *why);
/* Numbers of one or two dimensions as targets [count, features], finite. The caller frees *targets. */
ERR_MUST_USE enum err array_targets(
    float **targets, const struct array *a, struct unpack *io, struct why *why);

#endif
