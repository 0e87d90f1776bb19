#include "late.h"

#include <math.h>
#include <string.h>

#include "job.h"

double
late_weight(const struct staleness_spec *spec, uint64_t t)
{
	const double age = 1 + (double)t;

	switch (spec->weight) {
	case STALENESS_SQRT:
		return 1 / sqrt(age);
	case STALENESS_INVERSE:
		return 1 / age;
	case STALENESS_CONSTANT:
		break;
	}
	return 1;
}

void
late_apply(const struct staleness_spec *spec, uint64_t t, double *weight, double *scale)
{
	const double s = late_weight(spec, t);
	const bool scales = spec->divide == STALENESS_BY_COUNT;

	*scale = scales ? s : 1;
	*weight *= scales ? 1 : s;
}

void
late_trace(struct late_point *points, size_t count)
{
	const uint8_t *way = count > 0 ? points[0].base : NULL;

	for (size_t i = 0; i < count; i++) {
		struct late_point *p = &points[i];
		if (i > 0 && memcmp(p->model, way, sizeof(p->model)) == 0)
			way = p->base;
		p->live = memcmp(p->base, way, sizeof(p->base)) == 0;
	}
}

void
late_open(
    struct late_point *points, size_t *count, size_t most, uint64_t round, const uint8_t base[32])
{
	memmove(points + 1, points, (most - 1) * sizeof(*points));
	*count += *count < most;
	points[0] = (struct late_point){.round = round};
	memcpy(points[0].base, base, sizeof(points[0].base));
	late_trace(points, *count);
}

const struct late_point *
late_find(const struct late_point *points, size_t count, uint64_t round)
{
	for (size_t i = 0; i < count; i++)
		if (points[i].round == round)
			return &points[i];
	return NULL;
}

#define OFTEN 3 /* times a fair share */

uint64_t
late_rest(uint64_t devices, uint32_t goal)
{
	const uint64_t turns = devices / ((uint64_t)OFTEN * goal);

	return turns > 0 ? turns - 1 : 0;
}

void
late_bases_add(struct late_bases *b, const struct late_base *newer)
{
	if (b->count == LATE_BASES_MAX)
		late_bases_forget(b, b->items[0].round + 1);
	b->items[b->count++] = *newer;
}

void
late_bases_forget(struct late_bases *b, uint64_t before)
{
	uint32_t old = 0;

	while (old < b->count && b->items[old].round < before)
		old++;
	b->count -= old;
	memmove(b->items, b->items + old, b->count * sizeof(*b->items));
}

void
late_bases_branch(struct late_bases *b, const uint8_t model[32])
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->count; i++)
		if (memcmp(b->items[i].model, model, 32) == 0)
			b->items[kept++] = b->items[i];
	b->count = kept;
}

const struct late_base *
late_bases_find(const struct late_bases *b, uint64_t round)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (b->items[i].round == round)
			return &b->items[i];
	return NULL;
}

uint64_t
late_measured(const struct late_answers *all, size_t count, uint64_t last, uint32_t quorum)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < count; i++)
		if (all[i].count >= quorum && all[i].round > last && all[i].round > newest)
			newest = all[i].round;
	return newest;
}
