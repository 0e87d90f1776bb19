#include "measures.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cuts.h"
#include "measures_file.h"
#include "orders.h"
#include "recipe.h"
#include "timing.h"

#define PINGS 16
#define PING_LARGE ((size_t)1 << 20)
#define PING_SMALL 64

/* Layers between which there is no cut. */
struct atom {
	uint32_t first, last;
};

struct taking {
	struct measures *out;
	struct world *world;
	const struct recipe *recipe;
	const struct net_part *whole;
	unsigned threads;
	uint32_t lender, sharer; /* atoms that share a weight; sharer 0: none do */
	struct atom *atoms;
	uint32_t count;
	uint32_t heaviest; /* atom */
	double heaviest_s; /* of it, at rank 0 */
	bool known; /* all seconds, from before */
};

/* --- where cuts are */

/* A shared weight's layers are in the first stage, and in the last one. */
static void
find_cuts(struct taking *t)
{
	const struct net_spec *spec = t->whole->spec;
	uint32_t n = t->out->count, lender = 0, sharer = n;
	struct cuts_crossing c;

	for (uint32_t i = 0; i < n; i++)
		if (spec->layers[i].tied > 0) {
			lender = lender > spec->layers[i].tied ? lender : spec->layers[i].tied;
			sharer = sharer < i ? sharer : i;
		}
	for (uint32_t i = 1; i < n; i++)
		t->out->cut[i] = !cuts_crossed(spec, i, &c) &&
		    (!cuts_tied(spec, i) || (i >= lender && i <= sharer));
}

static void
list_atoms(struct taking *t)
{
	const struct net_spec *spec = t->whole->spec;

	for (uint32_t i = 0; i < t->out->count; i++)
		if (i == 0 || t->out->cut[i])
			t->atoms[t->count++] = (struct atom){i, t->out->count};
	for (uint32_t a = 0; a + 1 < t->count; a++)
		t->atoms[a].last = t->atoms[a + 1].first;
	t->sharer = t->count > 1 && net_spec_ties(spec) ? t->count - 1 : 0;
}

/* --- passes */

/* The first and the last atom are measured together if they share a weight. */
static struct timing
timing_of(const struct taking *t, uint32_t atom)
{
	struct timing of = {.whole = t->whole,
	    .threads = t->threads,
	    .rank = courier_rank(t->world->courier),
	    .first = t->atoms[atom].first,
	    .last = t->atoms[atom].last};

	if (t->sharer > 0 && atom == 0)
		of.tail_first = t->atoms[t->sharer].first;
	return of;
}

static enum err
take_atom(struct taking *t, uint32_t atom, struct why *why)
{
	const struct timing of = timing_of(t, atom);
	struct timing_passes p[NET_RANGES] = {{0, 0}};
	enum err e = timing_take(&of, p, why);
	double s = p[0].forward_s + p[0].back_s + p[1].forward_s + p[1].back_s;

	if (e)
		return e;
	t->out->forward_s[of.first] = p[0].forward_s;
	t->out->back_s[of.first] = p[0].back_s;
	if (of.tail_first > 0) {
		t->out->forward_s[of.tail_first] = p[1].forward_s;
		t->out->back_s[of.tail_first] = p[1].back_s;
	}
	/* What is measured elsewhere, too, should not be what only rank 0 will have. */
	bool outer = of.tail_first > 0 && t->count > 2;
	if (!outer && s > t->heaviest_s) {
		t->heaviest_s = s;
		t->heaviest = atom;
	}
	return ERR_OK;
}

static enum err
take_own(struct taking *t, struct why *why)
{
	/* The last one goes with the first if they share a weight. */
	uint32_t own = t->sharer > 0 ? t->sharer : t->count;
	enum err e = ERR_OK;

	for (uint32_t a = 0; !e && !t->known && a < own; a++)
		e = take_atom(t, a, why);
	t->out->factor[0] = 1;
	t->out->memory[0] =
	    timing_memory(courier_ranks(t->world->courier), courier_threads(t->world->courier));
	return e;
}

/* --- the other ranks */

static enum err
answer_of(struct taking *t, unsigned rank, struct why *why)
{
	struct order_measured m;
	struct answer a;
	enum err e = world_receive(t->world, rank, PARCEL_REPORT, 0, &a, sizeof(a));

	if (!e)
		e = world_receive(t->world, rank, PARCEL_REPORT, 1, &m, sizeof(m));
	if (e)
		return err_set(why, e, "rank %u is gone", rank);
	if (a.failed)
		return err_set(why,
		    a.failed > 0 && a.failed < ERR_COUNT ? (enum err)a.failed : ERR_CORRUPT,
		    "rank %u: %.*s", rank, (int)sizeof(a.text) - 16, a.text);
	if (!t->known)
		t->out->factor[rank] =
		    m.seconds > 0 && t->heaviest_s > 0 ? m.seconds / t->heaviest_s : 1;
	t->out->memory[rank] = m.memory;
	return ERR_OK;
}

static enum err
take_rank(struct taking *t, unsigned rank, struct why *why)
{
	/* Of no layer there is nothing but the memory. */
	struct timing of = {.first = 0};
	if (!t->known)
		of = timing_of(t, t->heaviest);
	const struct recipe_text *text = t->recipe->text;
	const struct order o = {.kind = ORDER_MEASURE,
	    .text = recipe_text_bytes(text),
	    .classes = (uint32_t)t->whole->classes,
	    .max_batch = t->whole->max_batch,
	    .threads = t->threads,
	    .train = true,
	    .recompute = t->whole->recompute,
	    .first = of.first,
	    .last = of.last,
	    .tail_first = of.tail_first};
	enum err e = world_order(t->world, rank, &o);

	if (!e)
		e = world_send(
		    t->world, rank, PARCEL_TEXT, recipe_text_all(text), recipe_text_bytes(text));
	return e ? err_set(why, e, "rank %u is gone", rank) : answer_of(t, rank, why);
}

/* --- links */

/* Seconds there and back, of the quickest. */
static enum err
ping(struct taking *t, unsigned rank, void *data, size_t bytes, double *out)
{
	const struct order o = {.kind = ORDER_PING, .n = PINGS, .first = bytes};
	enum err e = world_order(t->world, rank, &o);

	*out = 0;
	for (int i = 0; !e && i < PINGS; i++) {
		double began = clock_seconds();
		e = world_send(t->world, rank, PARCEL_TEXT, data, bytes);
		if (!e)
			e = world_receive(t->world, rank, PARCEL_TEXT, 0, data, bytes);
		double took = clock_seconds() - began;
		*out = i == 0 || took < *out ? took : *out;
	}
	return e;
}

static enum err
take_link(struct taking *t, unsigned rank, void *data, struct why *why)
{
	struct measures *m = t->out;
	double small, large;
	enum err e = ping(t, rank, data, PING_SMALL, &small);

	if (!e)
		e = ping(t, rank, data, PING_LARGE, &large);
	if (e)
		return err_set(why, e, "rank %u is gone", rank);
	double latency = small / 2, rest = large / 2 - latency;
	double rate = rest > 0 ? (double)PING_LARGE / rest : 1e12;
	m->latency_s = latency > m->latency_s ? latency : m->latency_s;
	m->bytes_per_s = rate < m->bytes_per_s || m->bytes_per_s <= 0 ? rate : m->bytes_per_s;
	return ERR_OK;
}

static enum err
take_others(struct taking *t, struct why *why)
{
	void *data = calloc(1, PING_LARGE);
	enum err e = data ? ERR_OK : err_set(why, ERR_NOMEM, "no memory to measure links");

	for (unsigned r = 1; !e && r < t->out->ranks; r++) {
		e = take_rank(t, r, why);
		if (!e && !t->known)
			e = take_link(t, r, data, why);
	}
	free(data);
	return e;
}

enum err
measures_take(
    struct measures *out, struct world *world, const struct measures_want *want, struct why *why)
{
	size_t n = want->whole->spec->layer_count;
	struct taking t = {.out = out,
	    .world = world,
	    .recipe = want->recipe,
	    .whole = want->whole,
	    .threads = want->threads,
	    .atoms = calloc(n, sizeof(*t.atoms))};

	*out = (struct measures){.count = (uint32_t)n,
	    .forward_s = calloc(n, sizeof(double)),
	    .back_s = calloc(n, sizeof(double)),
	    .cut = calloc(n, sizeof(bool)),
	    .ranks = want->ranks};
	enum err e = t.atoms && out->forward_s && out->back_s && out->cut
	    ? ERR_OK
	    : err_set(why, ERR_NOMEM, "no memory to measure");
	if (!e) {
		find_cuts(&t);
		list_atoms(&t);
		t.known = measures_file_load(out, want);
		e = take_own(&t, why);
	}
	if (!e)
		e = take_others(&t, why);
	if (!e && !t.known)
		measures_file_save(out, want);
	free(t.atoms);
	return e;
}

void
measures_deinit(struct measures *m)
{
	free(m->forward_s);
	free(m->back_s);
	free(m->cut);
	*m = (struct measures){.count = 0};
}
