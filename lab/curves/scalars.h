#ifndef SCALARS_H
#define SCALARS_H
#include <stdbool.h>
#include <stddef.h>

struct json;

/*
 * The numbers of a ROUND of the API, each by a tag: "loss/train", "accuracy/train", "loss/eval", "accuracy/eval", "f1/eval", ...,
 * and "metrics/NAME" for what trainers report by names of their own.
 */
#define SCALARS_TAG_MAX 96

typedef void scalars_visit(void *context, const char *tag, double value);

/* Calls `visit` for each that the round has and that is finite, in a fixed order. */
void scalars_each(const struct json *round, scalars_visit *visit, void *context);
/* False if it has none of that tag. */
bool scalars_get(const struct json *round, const char *tag, double *value);
/* Which values of a tag are the better ones: 1 the larger, -1 the smaller, 0 of one that only its trainer knows. */
int scalars_better(const char *tag);
/* The tags that a person or a job's monitor means: "accuracy" (evaluated, then trained), "f1", "metrics.NAME", "NAME" of a trainer's own,
 * or a tag. Returns how many, one at least; the one that decides is the first. */
#define SCALARS_MEANT_MAX 2
size_t scalars_meant(const char *metric, char tags[SCALARS_MEANT_MAX][SCALARS_TAG_MAX]);
/* Is the round over? One that failed is, too. */
bool scalars_ended(const struct json *round);
/* When it was over, Unix seconds; 0 if it is not. */
double scalars_end(const struct json *round);

#endif
