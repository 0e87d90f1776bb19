#include "best.h"

#include <math.h>
#include <string.h>

static void
drop(struct best *b, uint32_t at)
{
	b->count--;
	memmove(&b->points[at], &b->points[at + 1], (b->count - at) * sizeof(*b->points));
}

static bool
drop_model(struct best *b, const uint8_t model[32])
{
	for (uint32_t i = 0; i < b->count; i++)
		if (memcmp(b->points[i].model, model, 32) == 0) {
			drop(b, i);
			return true;
		}
	return false;
}

bool
best_step(
    struct best *b, const struct monitor_spec *monitor, uint32_t room, const struct best_point *p)
{
	uint32_t at = 0;

	if (monitor->metric == MONITOR_NONE || !isfinite(p->value))
		return false;
	bool changed = drop_model(b, p->model);
	while (at < b->count &&
	    !(monitor->rises ? p->value > b->points[at].value : p->value < b->points[at].value))
		at++;
	if (at == room)
		return changed;
	if (b->count == room)
		b->count--;
	memmove(&b->points[at + 1], &b->points[at], (b->count - at) * sizeof(*b->points));
	b->points[at] = *p;
	b->count++;
	return true;
}

bool
best_holds(const struct best *b, const uint8_t model[32])
{
	for (uint32_t i = 0; i < b->count; i++)
		if (memcmp(b->points[i].model, model, 32) == 0)
			return true;
	return false;
}
