#ifndef CSV_H
#define CSV_H
#include "data_source.h"
#include "dataset.h"

/*
 * CSV, plain or gzip (RFC 4180): fields in columns; a line ends with LF, CRLF or CR; fields may stand in double quotes, and then hold
 * separators, line ends and doubled quotes; a byte order mark of UTF-8 and blank lines are ignored. The column `label` is
 * the class (a whole number, 0 <= class < RECIPE_CLASSES_MAX, or a name) or, with `regression`, the target. The features are decimal
 * numbers with a point: shape {n,1,1}. `why` counts lines and columns from 1 and never quotes the data.
 *
 * Classes are names if the first row's label is no number: those of `classes`, in that order, or, without such a list, the different
 * ones of the whole file, sorted by their bytes. A value is missing if its field is empty or one of NA, N/A, NaN, nan, null, NULL and
 * ?; a row with a missing label is left out or an error.
 */
#define CSV_LINE_MAX (1u << 22) /* bytes */
#define CSV_GROUPS_MAX (1u << 24)

struct csv_form {
	const char *label; /* a header name, else a 0-based number, else "last", also NULL */
	/* The features' columns in order, comma separated, each as `label`; NULL or "": all columns but label and group. */
	const char *columns;
	const char *group; /* a column that tells groups apart; NULL or "": none */
	const char *classes; /* NULL or "": see above */
	/* DATA_GUESS: a semicolon if the first line holds one outside quotes, else a comma if the line holds one, else a tab. */
	enum data_separator separator;
	/* DATA_HEADER_GUESS: the first line is a header if one of its fields is neither empty nor a number. */
	enum data_header header;
	/* "skip": rows with a missing value are left out; a number: taken for missing values; NULL or "": an error. */
	const char *missing;
	bool regression;
	size_t max_rows; /* 0: DATASET_EXAMPLES_MAX */
};

/* keep is as in idx.h. */
ERR_MUST_USE enum err csv_read(struct dataset *out, const void *file, size_t len,
    const struct csv_form *how, const uint32_t *keep, size_t keep_count, struct why *why);
/* Reads the whole table. The features go to the sink, row by row, and are not kept; *out gets everything else. An error of the sink ends
 * the reading. */
struct csv_sink {
	enum err (*row)(void *context, const float *values, size_t n, struct why *why);
	void *context;
};
ERR_MUST_USE enum err csv_stream(struct dataset *out, const void *file, size_t len,
    const struct csv_form *how, const struct csv_sink *sink, struct why *why);
/* The number of rows and the class of each (0 for regression), for sharding; the caller frees *labels. Checks the label column only; with
 * missing = skip also looks for missing values. */
ERR_MUST_USE enum err csv_labels(int32_t **labels, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why);
/* The number of rows and the group of each, numbered in the sorted order of the group column's values; the caller frees *groups. */
ERR_MUST_USE enum err csv_groups(int32_t **groups, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why);

#endif
