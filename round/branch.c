#include "branch.h"

#include <string.h>

void
branch_trace(struct branch_point *points, size_t count)
{
	const uint8_t *way = count > 0 ? points[0].base : NULL;

	for (size_t i = 0; i < count; i++) {
		struct branch_point *p = &points[i];
		if (i > 0 && memcmp(p->model, way, sizeof(p->model)) == 0)
			way = p->base;
		p->live = memcmp(p->base, way, sizeof(p->base)) == 0;
	}
}
