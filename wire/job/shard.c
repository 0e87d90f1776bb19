#include "shard.h"

#include <stdlib.h>
#include <string.h>

#include "prng.h"

#define LABEL_PIECES 2 /* pieces of one label order that make a shard */

static int
compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

struct labelled {
	int32_t label;
	uint32_t index;
};

static int
compare_labelled(const void *a, const void *b)
{
	const struct labelled *x = a, *y = b;

	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* order := example indices sorted by label, equal labels in their own order. */
static enum err
sort_by_label(uint32_t *order, const int32_t *labels, size_t examples)
{
	struct labelled *items = calloc(examples, sizeof(*items));

	if (!items)
		return ERR_NOMEM;
	for (size_t i = 0; i < examples; i++)
		items[i] = (struct labelled){.label = labels[i], .index = (uint32_t)i};
	qsort(items, examples, sizeof(*items), compare_labelled);
	for (size_t i = 0; i < examples; i++)
		order[i] = items[i].index;
	free(items);
	return ERR_OK;
}

static void
identity_order(uint32_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
}

/* Appends piece `piece` of `pieces` of order to out. */
static size_t
take_piece(uint32_t *out, const uint32_t *order, size_t examples, size_t piece, size_t pieces)
{
	size_t from = examples * piece / pieces, to = examples * (piece + 1) / pieces;

	memcpy(out, order + from, (to - from) * sizeof(*out));
	return to - from;
}

static enum err
pick(uint32_t *out, size_t *n, const struct shard *s, uint32_t *order, const int32_t *labels,
    size_t examples)
{
	struct prng rng;
	size_t pieces = s->by_label ? (size_t)s->count * LABEL_PIECES : s->count;

	prng_seed(&rng, s->seed);
	if (!s->by_label) {
		identity_order(order, examples);
		prng_shuffle(&rng, order, examples);
		*n = take_piece(out, order, examples, s->index - 1, pieces);
		return ERR_OK;
	}
	uint32_t *deal = calloc(pieces, sizeof(*deal));
	if (!deal || sort_by_label(order, labels, examples)) {
		free(deal);
		return ERR_NOMEM;
	}
	identity_order(deal, pieces);
	prng_shuffle(&rng, deal, pieces);
	*n = 0;
	for (size_t i = 0; i < LABEL_PIECES; i++)
		*n += take_piece(out + *n, order, examples,
		    deal[(s->index - 1) * (size_t)LABEL_PIECES + i], pieces);
	free(deal);
	return ERR_OK;
}

enum err
shard_pick(uint32_t **keep, size_t *keep_count, const struct shard *shard, const int32_t *labels,
    size_t examples, struct why *why)
{
	size_t pieces = (size_t)shard->count * (shard->by_label ? LABEL_PIECES : 1);

	if (shard->count < 1 || shard->index < 1 || shard->index > shard->count)
		return err_set(
		    why, ERR_INVALID, "shard %u/%u does not exist", shard->index, shard->count);
	if (shard->by_label && !labels)
		return err_set(why, ERR_INVALID, "a split by label needs class labels");
	if (examples < pieces || examples > UINT32_MAX)
		return err_set(why, ERR_INVALID, "%zu examples cannot be split into %zu pieces",
		    examples, pieces);
	uint32_t *out = calloc(examples, sizeof(*out)), *order = calloc(examples, sizeof(*order));
	enum err e = ERR_NOMEM;
	if (out && order)
		e = pick(out, keep_count, shard, order, labels, examples);
	free(order);
	if (e) {
		free(out);
		return err_set(why, e, "no memory for %zu examples", examples);
	}
	qsort(out, *keep_count, sizeof(*out), compare_u32);
	*keep = out;
	return ERR_OK;
}

size_t
shard_held(size_t examples, double share)
{
	size_t held = (size_t)(share * (double)examples);

	return share > 0 && held == 0 && examples >= 2 ? 1 : held;
}

enum err
shard_hold(uint32_t **order, size_t *held, size_t examples, double share, uint64_t seed)
{
	struct prng rng;

	if (examples > UINT32_MAX)
		return ERR_LIMIT;
	*held = shard_held(examples, share);
	*order = calloc(examples ? examples : 1, sizeof(**order));
	if (!*order)
		return ERR_NOMEM;
	identity_order(*order, examples);
	prng_seed(&rng, seed);
	prng_shuffle(&rng, *order, examples);
	/* Ascending order keeps copies sequential and the result readable. */
	qsort(*order, *held, sizeof(**order), compare_u32);
	qsort(*order + *held, examples - *held, sizeof(**order), compare_u32);
	return ERR_OK;
}
