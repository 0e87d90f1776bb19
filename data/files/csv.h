#ifndef CSV_H
#define CSV_H
#include "data_source.h"
#include "dataset.h"

/*
 * CSV, plain or gzip (RFC 4180): fields in columns; a line ends with LF, CRLF or CR; fields may stand in double quotes, and have
 * separators, line ends and doubled quotes there; a byte order mark of UTF-8 does not count, nor do blank lines. The column `label` is
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
	const char *
	    columns; /* the features, likewise, comma separated, in this order; NULL or "": all columns that are nothing else */
	const char *group; /* a column that tells groups apart; NULL or "": none */
	const char *classes; /* NULL or "": see above */
	/* Guessed: a semicolon if the first line holds one outside quotes, else a comma if it does, else a tab. */
	enum data_separator separator;
	/* Guessed: the first line is one if one of its fields is neither empty nor a number. */
	enum data_header header;
	const char *
	    missing; /* "skip": such rows do not count; a number to put there; NULL or "": an error */
	bool regression;
	size_t max_rows; /* 0: DATASET_EXAMPLES_MAX */
};

/* keep is as in idx.h. */
ERR_MUST_USE enum err csv_read(struct dataset *out, const void *file, size_t len,
    const struct csv_form *how, const uint32_t *keep, size_t keep_count, struct why *why);
/* All of the table, whose values go to the sink, row by row, and are not kept: *out has everything else. A failure of the sink ends the
 * reading. */
struct csv_sink {
	enum err (*row)(void *context, const float *values, size_t n, struct why *why);
	void *context;
};
ERR_MUST_USE enum err csv_stream(struct dataset *out, const void *file, size_t len,
    const struct csv_form *how, const struct csv_sink *sink, struct why *why);
/* Number of rows and the class of each (0 for regression), without keeping the values: for sharding. The caller frees *labels.
 * Checks the label column only, or with missing = skip what is missing. */
ERR_MUST_USE enum err csv_labels(int32_t **labels, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why);
/* The same of the groups, numbered as their values are sorted. */
ERR_MUST_USE enum err csv_groups(int32_t **groups, size_t *count, const void *file, size_t len,
    const struct csv_form *how, struct why *why);

#endif
