#include "timing.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "pretend.h"
#include "prng.h"
#include "ram.h"
#include "team.h"

#define RUNS 3

/* What one range's passes read and write. */
struct operands {
	float *x, *dy, *dx;
	int32_t *labels;
	float *targets;
};

static void
release(struct operands *o)
{
	free(o->x);
	free(o->dy);
	free(o->dx);
	free(o->labels);
	free(o->targets);
}

static float *
drawn(size_t n, float scale)
{
	float *x = malloc((n + 1) * sizeof(*x));
	struct prng r;

	prng_seed(&r, 1);
	for (size_t i = 0; x && i < n; i++)
		x[i] = scale * (2 * prng_float(&r) - 1);
	return x;
}

static enum err
draw(struct operands *o, const struct net *net, size_t range, uint32_t n)
{
	struct net_edges e = net_range_edges(net, range);
	/* Tokens are whole numbers, of which every embedding knows 0. */
	float scale = net_vocabulary(net) > 0 ? 0 : 1;

	*o = (struct operands){.x = drawn(n * e.in, scale),
	    .dy = drawn(n * e.out, 1e-3f),
	    .dx = drawn(n * e.in, 0),
	    .labels = calloc(n * net_labels(net) + 1, sizeof(int32_t)),
	    .targets = drawn(n * e.out, 1)};
	return o->x && o->dy && o->dx && o->labels && o->targets ? ERR_OK : ERR_NOMEM;
}

/* Forward and back once. */
static enum err
pass(struct net *net, const struct timing *t, size_t range, const struct operands *o,
    struct timing_passes *out)
{
	size_t last = range > 0 ? t->whole->spec->layer_count : t->last,
	       first = range > 0 ? t->tail_first : t->first;
	const struct net_batch batch = {
	    .x = o->x, .labels = o->labels, .targets = o->targets, .n = t->whole->max_batch};
	const struct net_gradients g = {.output = last < t->whole->spec->layer_count ? o->dy : NULL,
	    .input = first > 0 ? o->dx : NULL,
	    .share = 1};
	struct net_result result;
	double began = clock_seconds();
	enum err e = ERR_OK;

	if (pretend_on())
		pretend_pass(t->rank, last - first, false);
	else
		e = net_forward(net, (uint32_t)range, &batch);
	out->forward_s = clock_seconds() - began;
	if (!e && pretend_on())
		pretend_pass(t->rank, last - first, true);
	else if (!e)
		e = net_backward(net, (uint32_t)range, &g, &result);
	out->back_s = clock_seconds() - began - out->forward_s;
	/* Of what was drawn a loss may be anything. */
	return e == ERR_NUMERIC ? ERR_OK : e;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static enum err
take_range(struct net *net, const struct timing *t, size_t range, struct timing_passes *out)
{
	double forward[RUNS], back[RUNS];
	struct operands o;
	struct timing_passes p;
	enum err e = draw(&o, net, range, t->whole->max_batch);

	/* The first one touches the memory. */
	for (int i = -1; !e && i < RUNS; i++) {
		e = pass(net, t, range, &o, &p);
		if (i >= 0) {
			forward[i] = p.forward_s;
			back[i] = p.back_s;
		}
	}
	release(&o);
	if (e)
		return e;
	qsort(forward, RUNS, sizeof(*forward), by_value);
	qsort(back, RUNS, sizeof(*back), by_value);
	*out = (struct timing_passes){forward[RUNS / 2], back[RUNS / 2]};
	return ERR_OK;
}

enum err
timing_take(const struct timing *t, struct timing_passes out[NET_RANGES], struct why *why)
{
	static const struct net_update plain = {.rate = 1e-6f, .parts = 2};
	struct net_part part = *t->whole;
	struct team *team = NULL;
	struct net *net = NULL;

	part.first = t->first;
	part.last = t->last;
	part.contexts = 1;
	part.train = true;
	part.planned = 0;
	part.tail.first = t->tail_first;
	part.tail.last = t->tail_first > 0 ? part.spec->layer_count : 0;
	part.tail.contexts = t->tail_first > 0 ? 1 : 0;
	enum err e = team_new(&team, t->threads > 0 ? t->threads : 1);
	part.team = team;
	if (!e)
		e = net_new_part(&net, &part, why);
	if (!e)
		e = net_prepare(net, &plain, why);
	if (!e)
		net_init(net, 1);
	for (size_t r = 0; !e && r < (t->tail_first > 0 ? 2u : 1u); r++)
		e = take_range(net, t, r, &out[r]);
	net_free(net);
	team_free(team);
	/* Back to the system, where it counts for the nets to come. */
	malloc_trim(0);
	return e;
}

/* Bytes of a line of /proc/self/status; 0: not known. */
static uint64_t
status_of(const char *key)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = strtoull(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return kib << 10;
}

uint64_t
timing_memory(unsigned ranks, bool threads)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t limit = ram_limit();
	uint64_t all = limit > 0 && limit < machine ? limit : machine;
	/* What limits this process counts what is reserved, stacks included. Processes have a limit each, and the machine together. */
	uint64_t used = all < machine ? status_of("VmData:") : status_of("RssAnon:");
	uint64_t left = all > used ? all - used : 0, each = machine / ranks;

	if (threads || all == machine)
		left /= ranks;
	return left == 0 ? 1 : left < each ? left : each;
}
