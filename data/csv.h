#ifndef CSV_H
#define CSV_H
#include "dataset.h"

/*
 * CSV, plain or gzip: decimal numbers with a point, separated by semicolons if the first line holds one and by commas otherwise, LF
 * or CRLF; fields may stand in double quotes; blank lines do not count as rows. The first line is a header if one of its fields is
 * neither empty nor a number. The column `label` is the class (whole, 0 <= class < RECIPE_CLASSES_MAX) or, with `regression`, the
 * target. The other columns are the features, in order: shape {n,1,1}. `why` counts lines and columns from 1 and never quotes the
 * data.
 */
#define CSV_LINE_MAX (1u << 22) /* bytes */

struct csv_form {
	const char *label; /* a header name, else a 0-based number, else "last", also NULL */
	bool regression;
	size_t max_rows; /* 0: DATASET_EXAMPLES_MAX */
};

/* keep is as in idx.h. */
ERR_MUST_USE enum err csv_read(struct dataset *out, const void *file, size_t len,
    const struct csv_form *how, const uint32_t *keep, size_t keep_count, struct why *why);
/* Number of rows and the class of each (0 for regression), without keeping the values: for sharding. The caller frees *labels.
 * Checks the label column only. */
ERR_MUST_USE enum err csv_labels(int32_t **labels, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why);

#endif
