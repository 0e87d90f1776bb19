#include "series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "json.h"
#include "states.h"

static const char *const axes[] = {
    [SERIES_ROUND] = "round", [SERIES_REPORTS] = "reports", [SERIES_TIME] = "time"};

bool
series_axis_find(const char *name, enum series_axis *out)
{
	for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++)
		if (strcmp(axes[i], name) == 0) {
			*out = (enum series_axis)i;
			return true;
		}
	return false;
}

const char *
series_axis_name(enum series_axis axis)
{
	return axes[axis];
}

void
series_init(struct series *s, const char *tag, enum series_axis axis)
{
	*s = (struct series){.axis = axis, .opened = NAN};
	snprintf(s->tag, sizeof(s->tag), "%s", tag);
}

void
series_deinit(struct series *s)
{
	free(s->x);
	free(s->y);
	free(s->round);
	s->x = s->y = s->round = NULL;
	s->count = s->room = 0;
}

static bool
grow_one(double **array, size_t room)
{
	double *larger = realloc(*array, room * sizeof(**array));

	if (larger)
		*array = larger;
	return larger != NULL;
}

static enum err
make_room(struct series *s, struct why *why)
{
	size_t room = s->room ? s->room * 2 : 64;

	if (s->count < s->room)
		return ERR_OK;
	if (room > SERIES_MAX)
		return err_set(why, ERR_LIMIT, "more than %u rounds", SERIES_MAX);
	if (!grow_one(&s->x, room) || !grow_one(&s->y, room) || !grow_one(&s->round, room))
		return err_set(why, ERR_NOMEM, "no memory");
	s->room = room;
	return ERR_OK;
}

static double
number(const struct json *o, const char *key, double absent)
{
	double v;

	return json_double(json_get(o, key), &v) ? v : absent;
}

static double
place(const struct series *s, const struct json *round)
{
	switch (s->axis) {
	case SERIES_REPORTS:
		return s->reports;
	case SERIES_TIME:
		return scalars_end(round) - s->opened;
	default:
		return number(round, "round", 0);
	}
}

enum err
series_add(struct series *s, const struct json *round, struct why *why)
{
	double y = NAN;
	enum round_outcome outcome = states_round_find(json_string(json_get(round, "state")));
	bool failed = outcome == OUTCOME_FAILED;

	if (isnan(s->opened))
		s->opened = number(round, "opened_at", 0);
	if (!scalars_ended(round))
		return ERR_OK;
	/* Evaluations bring no delta. */
	if (!states_round_evaluates(outcome))
		s->reports += number(round, "reports", 0);
	if (!failed && !scalars_get(round, s->tag, &y))
		return ERR_OK;
	enum err e = make_room(s, why);
	if (e)
		return e;
	s->x[s->count] = place(s, round);
	s->round[s->count] = number(round, "round", 0);
	s->y[s->count++] = y;
	return ERR_OK;
}

bool
series_at(const struct series *s, double x, double *y)
{
	bool found = false;

	for (size_t i = 0; i < s->count && s->x[i] <= x; i++)
		if (!isnan(s->y[i])) {
			*y = s->y[i];
			found = true;
		}
	return found;
}

ptrdiff_t
series_best(const struct series *s, bool largest)
{
	ptrdiff_t best = -1;

	for (size_t i = 0; i < s->count; i++) {
		if (isnan(s->y[i]))
			continue;
		if (best < 0 || (largest ? s->y[i] > s->y[best] : s->y[i] < s->y[best]))
			best = (ptrdiff_t)i;
	}
	return best;
}
