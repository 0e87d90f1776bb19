#include "fold_cost.h"

#include "job.h"
#include "rule.h"
#include "server_step.h"
#include "tensor.h"

/* Read, moved, looked at, hashed and written again. */
#define STEP_WORK 8
#define VECTOR_WORK 4

static uint64_t
add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct fold_cost
fold_cost(const struct aggregate_spec *aggregate, const struct download_spec *download,
    const struct tensor_table *table, size_t deltas, unsigned threads)
{
	struct server_step s = {.table = table};
	struct fold_cost c = {.work = 0};
	const double elements = (double)table->elements;

	if (server_step_choose(&s, aggregate, 1) || server_step_download(&s, download, 1, 1, NULL))
		return c;
	const struct rule_cost r = rule_cost(&aggregate->rule, deltas, threads);
	const uint64_t state = server_step_floats(&s) * sizeof(float);
	c.work = elements * (STEP_WORK + r.each * (aggregate->variates > 0 ? 2 : 1)) + r.once +
	    (double)state / sizeof(float) * VECTOR_WORK;
	c.bytes = add(table->bytes, add(state, r.bytes));
	if (s.download.difference.codec)
		c.bytes = add(c.bytes, s.download.difference.payload_bytes);
	c.bytes = add(c.bytes, table->elements / RULE_TILE * sizeof(double));
	return c;
}
