#include "elements.h"

#include "team.h"

#define CURVE 40.0 /* an element of it, in multiply-adds */

static void
run_piece(void *arg, size_t first, size_t count, unsigned lane)
{
	const struct elements *e = arg;

	(void)lane;
	e->fn(e->to + first, e->a + first, e->b ? e->b + first : NULL, count, e->add);
}

void
elements_run(struct team *t, const struct elements *e)
{
	struct elements all = *e;

	team_elements(t, e->n, e->curve ? CURVE : TEAM_MOVE, run_piece, &all);
}
