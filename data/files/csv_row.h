#ifndef CSV_ROW_H
#define CSV_ROW_H
#include "buf.h"
#include "csv.h"
#include "unpack.h"

/*
 * A CSV file row by row: lines cut into fields, which columns are what, which rows count. A line end in quotes is a part of the field.
 * Reasons name the row's first line and the column.
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
	bool header; /* the first line is one */
	size_t word; /* guessed from this column alone; or CSV_ROW_NONE */
	bool doubtful; /* that is the label: the line may be a row as well */
	bool pending; /* the first line is a row that was not returned yet */
	size_t columns, label, group; /* group: CSV_ROW_NONE if there is none */
	size_t *features; /* the column of each */
	size_t feature_count;
	char **fields; /* of the current row, */
	bool cut; /* once it was cut */
	bool skip, fill;
	double filler;
	struct why *why;
};

/* Reads the first line. *c must be given to csv_row_close in either case; file and how must outlive it. */
ERR_MUST_USE enum err csv_row_open(
    struct csv_row *c, const void *file, size_t len, const struct csv_form *how, struct why *why);
void csv_row_close(struct csv_row *c);
/* Brings the next row that counts into c->line. */
ERR_MUST_USE enum err csv_row_next(struct csv_row *c, bool *end);
/* Cuts it into fields: CSV_ROW_ALL, which are as many as the first line has, or those up to column `last`. What comes after the first
 * time for a row does nothing. */
ERR_MUST_USE enum err csv_row_cut(struct csv_row *c, size_t last);
/* A field that was cut, as a number. A missing one is the filler, if there is one. */
ERR_MUST_USE enum err csv_row_number(const struct csv_row *c, size_t column, double *out);
bool csv_row_missing(const char *field);
/* ERR_INVALID, "line 2, column 3: what". */
enum err csv_row_fault(const struct csv_row *c, size_t column, const char *what);

#endif
