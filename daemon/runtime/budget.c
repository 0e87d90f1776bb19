#include "budget.h"

#include <pthread.h>
#include <stdlib.h>

#include "ram.h"

/* Memory assumed of a machine that does not say how much it has. */
#define UNKNOWN ((uint64_t)2 << 30)
#define LEAST ((uint64_t)64 << 20)

struct budget {
	pthread_mutex_t lock;
	uint64_t large, small; /* taken */
	uint64_t found;
};

enum err
budget_new(struct budget **out)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		return ERR_NOMEM;
	uint64_t limit = ram_limit();
	b->found = (limit > 0 ? limit : UNKNOWN) / 2;
	if (b->found < LEAST)
		b->found = LEAST;
	pthread_mutex_init(&b->lock, NULL);
	*out = b;
	return ERR_OK;
}

void
budget_free(struct budget *b)
{
	if (!b)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b);
}

uint64_t
budget_all(const struct budget *b, uint64_t most)
{
	return most > 0 ? most : b ? b->found : UINT64_MAX;
}

uint64_t
budget_large(uint64_t all)
{
	return all - all / 16 * 3;
}

uint64_t
budget_small(uint64_t all)
{
	return all / 32;
}

bool
budget_take(struct budget *b, uint64_t all, uint64_t bytes, bool small)
{
	const uint64_t most = budget_large(all);

	if (!b)
		return true;
	pthread_mutex_lock(&b->lock);
	bool takes = small || b->large == 0 || (b->large <= most && bytes <= most - b->large);
	if (takes && small)
		b->small += bytes;
	else if (takes)
		b->large += bytes;
	pthread_mutex_unlock(&b->lock);
	return takes;
}

void
budget_give(struct budget *b, uint64_t bytes, bool small)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	if (small)
		b->small -= bytes;
	else
		b->large -= bytes;
	pthread_mutex_unlock(&b->lock);
}

uint64_t
budget_taken(struct budget *b)
{
	pthread_mutex_lock(&b->lock);
	uint64_t taken = b->large + b->small;
	pthread_mutex_unlock(&b->lock);
	return taken;
}
