#ifndef PRINT_H
#define PRINT_H
#include <stddef.h>

#include "json.h"

/* What people and programs read on standard output. */

#define CMD_PRINT_COLUMNS_MAX 12
#define CMD_PRINT_CELL_MAX 80

/* A JSON value, indented, with a newline. */
void cmd_print_json(const struct json *v);

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

/* Cells from JSON members; "-" where a value is absent. */
void cmd_print_text(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_short_id(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_count(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_figure(struct cmd_table *t, const struct json *object, const char *key);
void cmd_print_bytes(struct cmd_table *t, const struct json *object, const char *key);
/* "a=b,c=d". */
void cmd_print_labels(struct cmd_table *t, const struct json *object, const char *key);
/* How long ago (or, for times to come, how long until): "5s", "3m", "2h", "4d". */
void cmd_print_age(struct cmd_table *t, const struct json *object, const char *key);

#endif
