#ifndef GRID_H
#define GRID_H
#include "edit.h"

/*
 * The grid of a sweep: a cell, which is a job, for each combination of values of some lists. The first list varies slowest. A job's name
 * is the prefix and those of its cell's values that differ between jobs, in characters that are legal in names.
 */
#define GRID_LISTS_MAX 8
#define GRID_CELLS_MAX 1000
#define GRID_NAME_MAX 64 /* with the final zero */

struct grid {
	struct grid_list {
		char path[EDIT_PATH_MAX];
		struct json *values; /* an array */
		size_t count;
	} lists[GRID_LISTS_MAX];
	size_t count;
	size_t cells; /* 1 without lists */
};

void grid_init(struct grid *g);
void grid_deinit(struct grid *g);
/* "PATH=A,B,C"; a comma within JSON's brackets or quotes is the value's own. ERR_INVALID for a path given twice, "name", a value
 * twice; ERR_LIMIT past the bounds above. */
ERR_MUST_USE enum err grid_add(struct grid *g, const char *text, struct why *why);
const struct json *grid_value(const struct grid *g, size_t cell, size_t list);
/* out: a value as people write it, strings without quotes. */
void grid_show(char *out, size_t room, const struct json *value);
void grid_name(char out[GRID_NAME_MAX], const struct grid *g, size_t cell, const char *prefix);
/* Replaces each character that a name may not have by '-'. */
void grid_clean(char *name);
/* *out: the job document of a cell, which is `base` with the cell's values and name. The caller frees *out. */
ERR_MUST_USE enum err grid_document(struct json **out, const struct grid *g, size_t cell,
    const struct json *base, const char *prefix, struct why *why);

#endif
