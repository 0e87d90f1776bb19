#ifndef PRINT_H
#define PRINT_H
#include <stddef.h>

struct json;

/*
 * Printing for people and programs. Much of the text was written by others, so control characters never reach a terminal (shown.h): in
 * tables and lines '?' replaces them, in JSON an escape, which means the same text.
 */

#define CMD_PRINT_COLUMNS_MAX 16
#define CMD_PRINT_CELL_MAX 80
#define CMD_PRINT_ID_SHOWN 12 /* digits of an id in a table */

/* Prints a JSON value with a newline: cmd_print_json indented, cmd_print_json_line on one line. */
void cmd_print_json(const struct json *v);
void cmd_print_json_line(const struct json *v);

/* Prints a line, in which only the newline at its end is a control character; cmd_print_part prints text without a newline. */
void cmd_print_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cmd_print_part(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints text on standard error, keeping its lines and tabs. */
void cmd_print_said(const char *text);
/* Prints "rivulet: " and a line on standard error. */
void cmd_print_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line for each object of an array: the object's value of this key, if it is a string. */
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
/* Unix seconds as "2026-11-22T22:38:05Z", in UTC so that nobody has to know the writer's time zone; "?" for a number that is no time. */
#define CMD_PRINT_TIME_MAX 32
void cmd_print_time(char out[CMD_PRINT_TIME_MAX], double seconds);
/* v with four decimals, "0.7174"; from a million on in four digits, "1e+300", so that it fits a column. Returns out. */
#define CMD_PRINT_NUMBER_MAX 16
const char *cmd_print_number(char out[CMD_PRINT_NUMBER_MAX], double v);
/* A cell with how long ago a time was: "5s", "3m", "2h", "4d"; "ahead" if the time is in the future, as one of two clocks was wrong. */
void cmd_print_age(struct cmd_table *t, const struct json *object, const char *key);
/* A cell with how long it is until a time, or how long ago the time was. */
void cmd_print_until(struct cmd_table *t, const struct json *object, const char *key);

#endif
