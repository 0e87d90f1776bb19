#include "elements.h"

#include "team.h"

/* Of one element, in multiply-adds. */
#define MOVE 8.0
#define CURVE 40.0

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

	team_share(t,
	    &(struct team_work){.n = e->n,
		.least = 1024,
		.each = e->curve ? CURVE : MOVE,
		.fn = run_piece,
		.arg = &all});
}
