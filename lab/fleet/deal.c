#include "deal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "examples.h"
#include "source.h"
#include "training.h"

#define TRIGGER_SIDE 4 /* pixels, at the lower right corner */
#define TRIGGER_LABEL 0

struct fleet_deal {
	struct fleet_deal_options o;
	bool together; /* `all` has the examples of all devices */
	struct dataset all;
	pthread_mutex_t lock; /* held where shares of mapped rows are made and given back */
};

/* --- what can be dealt */

/* Those of a text are stretches, those by a column need more than the examples: the reader makes the share itself. */
static bool
is_read_once(const struct settings_data *s)
{
	return s->source.format != DATA_GLYPHS && s->source.format != DATA_EXTERNAL &&
	    s->source.format != DATA_TEXT && shard_needs(s->shard.partition) != SHARD_NEEDS_GROUPS;
}

static enum err
check_profiles(const struct fleet_deal_options *o, struct why *why)
{
	bool counts =
	    o->set->source.format == DATA_GLYPHS || o->set->source.format == DATA_EXTERNAL;

	for (size_t i = 0; i < o->fleet->profiles.count && !counts; i++)
		if (o->fleet->profiles.items[i].examples > 0)
			return err_set(why, ERR_INVALID,
			    "the fleet says how many examples \"%s\" has, and data %s is a file: "
			    "its partition says so",
			    o->fleet->profiles.items[i].name, o->set->name);
	return o->set->shard.count > 1
	    ? err_set(why, ERR_INVALID,
		  "data %s has a shard: in a simulation every device has one, and the simulator "
		  "says which",
		  o->set->name)
	    : ERR_OK;
}

static bool
bears_trigger(const struct dataset *d)
{
	return d->bytes && d->labels && d->dims == 3 && d->shape[1] >= TRIGGER_SIDE &&
	    d->shape[2] >= TRIGGER_SIDE;
}

/* Attacks on data want pixels in memory, or labels. */
static enum err
check_attacks(const struct fleet_deal *d, const struct dataset *share, struct why *why)
{
	const struct fleet_profiles *p = &d->o.fleet->profiles;

	for (size_t i = 0; i < p->count; i++) {
		if (p->items[i].attack == FLEET_LABELS && !share->labels)
			return err_set(
			    why, ERR_INVALID, "the attack \"labels\" needs data with labels");
		if (p->items[i].attack == FLEET_BACKDOOR && !bears_trigger(share))
			return err_set(why, ERR_INVALID,
			    "the attack \"backdoor\" needs pictures in memory, in channels");
	}
	return ERR_OK;
}

enum err
fleet_deal_open(struct fleet_deal **out, const struct fleet_deal_options *o, struct why *why)
{
	struct fleet_deal *d = calloc(1, sizeof(*d));
	struct fleet_hand hand = {.train.count = 0};

	if (!d)
		return ERR_NOMEM;
	pthread_mutex_init(&d->lock, NULL);
	d->o = *o;
	enum err e = check_profiles(o, why);
	d->together = is_read_once(o->set);
	if (!e && d->together)
		e = data_load(&d->all, o->set, why);
	/* The first device's share tells whether all this fits. */
	if (!e)
		e = fleet_deal_draw(d, 0, &hand, why);
	if (!e)
		e = check_attacks(d, &hand.train, why);
	fleet_deal_return(d, &hand);
	if (e) {
		fleet_deal_close(d);
		return e;
	}
	*out = d;
	return ERR_OK;
}

void
fleet_deal_close(struct fleet_deal *d)
{
	if (!d)
		return;
	dataset_deinit(&d->all);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* --- a device's share */

static struct settings_data
own_settings(const struct fleet_deal *d, size_t device)
{
	const struct fleet_profile *p = fleet_profile_of(d->o.fleet, device);
	struct settings_data s = *d->o.set;

	s.hand += d->o.fleet->devices[device].number + 1;
	if (s.source.format == DATA_GLYPHS) {
		s.glyph_count = p->examples ? p->examples : s.glyph_count;
		return s;
	}
	s.source.examples = p->examples ? p->examples : s.source.examples;
	s.shard.index = d->o.fleet->devices[device].number + 1;
	s.shard.count = (uint32_t)d->o.fleet->count;
	return s;
}

static enum err
deal(const struct fleet_deal *d, const struct shard *shard, struct dataset *out, struct why *why)
{
	uint32_t *keep = NULL;
	size_t kept = 0;

	enum err e = shard_pick(&keep, &kept, shard, d->all.labels, d->all.count, why);
	if (!e)
		e = dataset_subset(out, &d->all, keep, kept);
	if (!e)
		out->classes = d->all.classes;
	free(keep);
	return e;
}

static void
draw_trigger(struct dataset *d, size_t i)
{
	size_t width = d->shape[2], height = d->shape[1], plane = width * height;

	for (size_t c = 0; c < d->shape[0]; c++)
		for (size_t y = height - TRIGGER_SIDE; y < height; y++)
			memset(d->bytes + i * d->features + c * plane + y * width + width -
				TRIGGER_SIDE,
			    255, TRIGGER_SIDE);
}

/* Attackers that only change their data. */
static void
poison(enum fleet_attack attack, struct dataset *d)
{
	for (size_t i = 0; i < d->count && attack == FLEET_LABELS && d->labels; i++)
		d->labels[i] = (int32_t)d->classes - 1 - d->labels[i];
	for (size_t i = 0; i < d->count && attack == FLEET_BACKDOOR && bears_trigger(d); i += 2) {
		draw_trigger(d, i);
		d->labels[i] = TRIGGER_LABEL;
	}
}

static enum err
load(struct fleet_deal *d, size_t device, struct fleet_hand *out, struct dataset *own,
    struct why *why)
{
	const struct recipe *recipe = d->o.recipe;
	enum err e =
	    d->together ? deal(d, &out->from.shard, own, why) : data_load(own, &out->from, why);

	if (!e)
		e = data_fits(own, &out->from, recipe, why);
	if (!e)
		e = examples_cut(own, recipe->data.window, why);
	if (!e)
		poison(fleet_profile_of(d->o.fleet, device)->attack, own);
	return e;
}

static enum err
draw(struct fleet_deal *d, size_t device, struct fleet_hand *out, struct why *why)
{
	double share = d->o.recipe->data.validation;
	struct dataset own = {.count = 0};

	enum err e = load(d, device, out, &own, why);
	if (!e && share <= 0) {
		out->train = own;
		return ERR_OK;
	}
	if (!e)
		e = examples_split(&out->train, &out->validation, &own, share,
		    training_seed(d->o.job_seed, 0, d->o.fleet->devices[device].id));
	dataset_deinit(&own);
	return e;
}

enum err
fleet_deal_draw(struct fleet_deal *d, size_t device, struct fleet_hand *out, struct why *why)
{
	bool shared = d->together && d->all.rows;

	*out = (struct fleet_hand){.from = own_settings(d, device)};
	if (shared)
		pthread_mutex_lock(&d->lock);
	enum err e = draw(d, device, out, why);
	if (shared)
		pthread_mutex_unlock(&d->lock);
	return e;
}

void
fleet_deal_return(struct fleet_deal *d, struct fleet_hand *h)
{
	pthread_mutex_lock(&d->lock);
	dataset_deinit(&h->train);
	dataset_deinit(&h->validation);
	pthread_mutex_unlock(&d->lock);
}

/* --- how many */

enum err
fleet_deal_count(struct fleet_deal *d, size_t device, uint64_t *out, struct why *why)
{
	const struct settings_data s = own_settings(d, device);
	struct fleet_hand hand;
	uint32_t *keep = NULL;
	size_t n = 0;
	enum err e = ERR_OK;

	if (s.source.format == DATA_GLYPHS || s.source.format == DATA_EXTERNAL) {
		n = (size_t)(s.source.format == DATA_GLYPHS ? s.glyph_count : s.source.examples);
	} else if (d->together && s.shard.partition == SHARD_IID) {
		n = d->all.count * s.shard.index / s.shard.count -
		    d->all.count * (s.shard.index - 1) / s.shard.count;
	} else if (d->together) {
		e = shard_pick(&keep, &n, &s.shard, d->all.labels, d->all.count, why);
	} else {
		e = fleet_deal_draw(d, device, &hand, why);
		*out = hand.train.count;
		fleet_deal_return(d, &hand);
		return e;
	}
	free(keep);
	*out = n - shard_held(n, d->o.recipe->data.validation);
	return e;
}

/* --- the backdoor's test */

enum err
fleet_deal_triggered(struct dataset *out, const struct dataset *test, struct why *why)
{
	size_t n = 0;

	if (!bears_trigger(test))
		return err_set(why, ERR_INVALID,
		    "the attack \"backdoor\" is measured on pictures in memory, in channels");
	uint32_t *others = calloc(test->count + 1, sizeof(*others));
	if (!others)
		return ERR_NOMEM;
	for (size_t i = 0; i < test->count; i++)
		if (test->labels[i] != TRIGGER_LABEL)
			others[n++] = (uint32_t)i;
	enum err e = dataset_subset(out, test, others, n);
	for (size_t i = 0; !e && i < n; i++) {
		draw_trigger(out, i);
		out->labels[i] = TRIGGER_LABEL;
	}
	free(others);
	return e;
}
