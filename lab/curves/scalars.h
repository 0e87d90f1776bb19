#ifndef SCALARS_H
#define SCALARS_H
#include <stdbool.h>
#include <stddef.h>

struct json;

/*
 * The numbers of a ROUND of the API, each with a tag: "loss/train", "accuracy/train", "loss/eval", "accuracy/eval", "f1/eval", ...,
 * and "metrics/NAME" for metrics that trainers report by names of their own.
 */
#define SCALARS_TAG_MAX 96

typedef void scalars_visit(void *context, const char *tag, double value);

/* Calls `visit` for each finite number of the round, in a fixed order. */
void scalars_each(const struct json *round, scalars_visit *visit, void *context);
/* *value: the round's number with this tag. False if the round has none. */
bool scalars_get(const struct json *round, const char *tag, double *value);
/* Which values of a tag are better: 1 larger ones, -1 smaller ones, 0 not known, of a trainer's own metric. */
int scalars_better(const char *tag);
/* The tags that a metric of a person or of a job's monitor means: "accuracy" (evaluated, then trained), "f1", "metrics.NAME", the NAME of a
 * trainer's own metric, or a tag. Returns how many, at least one; the first tag that a round has counts. */
#define SCALARS_MEANT_MAX 2
size_t scalars_meant(const char *metric, char tags[SCALARS_MEANT_MAX][SCALARS_TAG_MAX]);
/* Has the round ended? A failed round has, too. */
bool scalars_ended(const struct json *round);
/* When the round ended, Unix seconds; 0 if it has not. */
double scalars_end(const struct json *round);

#endif
