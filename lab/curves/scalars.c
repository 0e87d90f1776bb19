#include "scalars.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "states.h"

#define METRICS "metrics/"
#define TOP "top"
#define EVALUATED "/eval"

static const struct {
	const char *tag;
	const char *path[3]; /* NULL: not so deep */
	int better;
} table[] = {
    {"loss/train", {"loss", NULL, NULL}, -1},
    {"accuracy/train", {"accuracy", NULL, NULL}, 1},
    {"loss/eval", {"evaluate", "loss", NULL}, -1},
    {"accuracy/eval", {"evaluate", "accuracy", NULL}, 1},
    {"recall/eval", {"figures", "macro", "recall"}, 1},
    {"precision/eval", {"figures", "macro", "precision"}, 1},
    {"f1/eval", {"figures", "macro", "f1"}, 1},
    {"mae/eval", {"figures", "mae", NULL}, -1},
    {"r2/eval", {"figures", "r2", NULL}, 1},
    {"auc/eval", {"figures", "auc", NULL}, 1},
};
#define COUNT (sizeof(table) / sizeof(table[0]))

static bool
fixed(const struct json *round, size_t i, double *value)
{
	const struct json *v = round;

	for (size_t k = 0; k < 3 && table[i].path[k]; k++)
		v = json_get(v, table[i].path[k]);
	return json_double(v, value) && isfinite(*value);
}

/* "top5" in the round's figures: a job says which it wants. */
static bool
is_top(const char *key)
{
	return strncmp(key, TOP, strlen(TOP)) == 0 && key[strlen(TOP)] != '\0' &&
	    key[strlen(TOP) + strspn(key + strlen(TOP), "0123456789")] == '\0';
}

static bool
top(const struct json *round, const char *tag, double *value)
{
	char key[SCALARS_TAG_MAX];

	snprintf(key, sizeof(key), "%.*s", (int)strcspn(tag, "/"), tag);
	return is_top(key) && strcmp(tag + strlen(key), EVALUATED) == 0 &&
	    json_double(json_get(json_get(round, "figures"), key), value) && isfinite(*value);
}

static bool
own(const struct json *metric, double *value)
{
	return json_double(json_get(metric, "mean"), value) && isfinite(*value);
}

void
scalars_each(const struct json *round, scalars_visit *visit, void *context)
{
	char tag[SCALARS_TAG_MAX];
	double value;

	for (size_t i = 0; i < COUNT; i++)
		if (fixed(round, i, &value))
			visit(context, table[i].tag, value);
	for (const struct json *f = json_first(json_get(round, "figures")); f; f = json_next(f)) {
		int n = snprintf(tag, sizeof(tag), "%s" EVALUATED, json_key(f));
		if (n > 0 && (size_t)n < sizeof(tag) && top(round, tag, &value))
			visit(context, tag, value);
	}
	for (const struct json *m = json_first(json_get(round, "metrics")); m; m = json_next(m)) {
		int n = snprintf(tag, sizeof(tag), METRICS "%s", json_key(m));
		if (n > 0 && (size_t)n < sizeof(tag) && own(m, &value))
			visit(context, tag, value);
	}
}

bool
scalars_get(const struct json *round, const char *tag, double *value)
{
	if (strncmp(tag, METRICS, strlen(METRICS)) == 0)
		return own(json_get(json_get(round, "metrics"), tag + strlen(METRICS)), value);
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(table[i].tag, tag) == 0)
			return fixed(round, i, value);
	return top(round, tag, value);
}

int
scalars_better(const char *tag)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(table[i].tag, tag) == 0)
			return table[i].better;
	return strncmp(tag, TOP, strlen(TOP)) == 0 ? 1 : 0;
}

size_t
scalars_meant(const char *metric, char tags[SCALARS_MEANT_MAX][SCALARS_TAG_MAX])
{
	size_t len = strlen(metric), count = 0;

	if (strchr(metric, '/')) {
		snprintf(tags[0], SCALARS_TAG_MAX, "%s", metric);
		return 1;
	}
	/* The table has what is trained before what is evaluated. */
	for (size_t i = COUNT; i-- > 0 && count < SCALARS_MEANT_MAX;)
		if (strncmp(table[i].tag, metric, len) == 0 && table[i].tag[len] == '/')
			strcpy(tags[count++], table[i].tag);
	if (count == 0 && is_top(metric))
		snprintf(tags[count++], SCALARS_TAG_MAX, "%.80s" EVALUATED, metric);
	else if (count == 0)
		snprintf(tags[count++], SCALARS_TAG_MAX, METRICS "%s",
		    strncmp(metric, "metrics.", 8) == 0 ? metric + 8 : metric);
	return count;
}

bool
scalars_ended(const struct json *round)
{
	enum round_outcome outcome = states_round_find(json_string(json_get(round, "state")));

	return outcome != OUTCOME_UNKNOWN && !states_round_is_open(outcome);
}

double
scalars_end(const struct json *round)
{
	double at;

	return json_double(json_get(round, "closed_at"), &at) ? at : 0;
}
