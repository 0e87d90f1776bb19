#ifndef PRINT_H
#define PRINT_H
#include <stddef.h>

struct json;

/*
 * What people and programs read on standard output. Much of it was written by others: nothing of that steers a terminal (shown.h). In
 * tables and lines '?' stands for what would, in JSON an escape, which means the same text.
 */

#define CMD_PRINT_COLUMNS_MAX 16
#define CMD_PRINT_CELL_MAX 80
#define CMD_PRINT_ID_SHOWN 12 /* digits of an id in a table */

/* A JSON value, indented, with a newline; the same on one line. */
void cmd_print_json(const struct json *v);
void cmd_print_json_line(const struct json *v);

/* A line, without control characters of its own but for the newline at its end; the same without a newline. */
void cmd_print_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cmd_print_part(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* On standard error, lines and tabs as they stand. */
void cmd_print_said(const char *text);
/* On standard error: "rivulet: " and the line. */
void cmd_print_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A line for each object of an array: what it has of that key, if that is text. */
void cmd_print_members(const struct json *array, const char *key);

/* A table that aligns its columns: cells are collected, then printed. Text is left, numbers (a digit or dash first) right. */
struct cmd_table {
	size_t columns;
	size_t count; /* cells */
	size_t room;
	char (*cells)[CMD_PRINT_CELL_MAX];
};
void cmd_print_start(struct cmd_table *t, const char *const *heads, size_t columns);
void cmd_print_cell(struct cmd_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void cmd_print_end(struct cmd_table *t);

/* A table of JSON: a line for each object of an array, whose cells come from a member of the object, or of its member `in`. */
struct cmd_column {
	const char *head; /* NULL ends a list of at most CMD_PRINT_COLUMNS_MAX */
	void (*cell)(struct cmd_table *t, const struct json *object, const char *key);
	const char *key, *in;
	size_t most; /* characters that are shown, behind which stands '~'; 0: all */
};
void cmd_print_rows(const struct cmd_column *columns, const struct json *array);

/* Cells from JSON members; "-" where a value is absent. */
void cmd_print_text(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_short_id(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_count(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_figure(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_bytes(struct cmd_table *t, const struct json *object, const char *key);
/* "a=b,c=d". */
void cmd_print_labels(struct cmd_table *t, const struct json *object, const char *key);
/* "2026-11-22T22:38:05Z", so that nobody has to know the zone of who printed it; "?" for what is no time. */
#define CMD_PRINT_TIME_MAX 32
void cmd_print_time(char out[CMD_PRINT_TIME_MAX], double seconds);
/* Four places, "0.7174"; from a million on four digits, "1e+300", for columns bear no more. Returns out. */
#define CMD_PRINT_NUMBER_MAX 16
const char *cmd_print_number(char out[CMD_PRINT_NUMBER_MAX], double v);
/* How long ago: "5s", "3m", "2h", "4d"; "ahead" was noted by a clock that was wrong, there or here. */
void cmd_print_age(struct cmd_table *t, const struct json *object, const char *key);
/* How long until, or how long ago it was over. */
void cmd_print_until(struct cmd_table *t, const struct json *object, const char *key);

#endif
