#ifndef CSV_ROW_H
#define CSV_ROW_H
#include "buf.h"
#include "csv.h"
#include "unpack.h"

/*
 * Reads a CSV file row by row: cuts lines into fields, finds the columns' meanings and the rows that count. A line end in quotes is a part
 * of the field. Reasons name the row's first line and the column.
 */
#define CSV_ROW_NONE SIZE_MAX
#define CSV_ROW_ALL SIZE_MAX

struct csv_row {
	struct unpack *io;
	struct buf line; /* the current row, cut up in place */
	uint64_t line_number; /* from 1: of the first line of the current row */
	uint64_t lines; /* read so far */
	uint64_t row; /* rows that counted so far */
	uint64_t max_rows;
	char separator;
	bool header; /* the first line is a header */
	/* The only column for which the first line was guessed to be a header; or CSV_ROW_NONE. */
	size_t word;
	bool doubtful; /* that column is the label: the first line may be a row as well */
	bool pending; /* the first line is a row that was not returned yet */
	size_t columns, label, group; /* group: CSV_ROW_NONE if there is none */
	size_t *features; /* the column of each feature */
	size_t feature_count;
	char **fields; /* of the current row; valid if `cut` */
	bool cut; /* csv_row_cut was called for the current row */
	bool skip, fill;
	double filler;
	struct why *why;
};

/* Reads the first line. *c must be given to csv_row_close also after an error; file and how must outlive *c. */
ERR_MUST_USE enum err csv_row_open(
    struct csv_row *c, const void *file, size_t len, const struct csv_form *how, struct why *why);
void csv_row_close(struct csv_row *c);
/* Brings the next row that counts into c->line. */
ERR_MUST_USE enum err csv_row_next(struct csv_row *c, bool *end);
/* Cuts the current row into fields: those up to column `last`, or with CSV_ROW_ALL all, which must be as many as the first line has. A
 * second call for a row does nothing. */
ERR_MUST_USE enum err csv_row_cut(struct csv_row *c, size_t last);
/* A cut field as a number; a missing value becomes the filler, if there is one. */
ERR_MUST_USE enum err csv_row_number(const struct csv_row *c, size_t column, double *out);
bool csv_row_missing(const char *field);
/* ERR_INVALID, "line 2, column 3: what". */
enum err csv_row_fault(const struct csv_row *c, size_t column, const char *what);

#endif
