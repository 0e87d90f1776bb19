#include "data_sets.h"

#include <stdlib.h>
#include <string.h>

#include "allowance.h"
#include "backoff.h"
#include "events.h"
#include "examples.h"
#include "training.h"

#define TRY_AGAIN_S 60.0

void
data_sets_init(struct data_sets *s, const struct settings *settings)
{
	memset(s, 0, sizeof(*s));
	s->settings = settings;
	s->count = settings->data_count;
	for (size_t i = 0; i < s->count; i++)
		s->items[i].settings = &settings->data[i];
}

static void
drop_split(struct data_sets_item *item)
{
	if (item->split) {
		dataset_deinit(&item->train);
		dataset_deinit(&item->validation);
	}
	item->split = false;
	item->split_id[0] = '\0';
}

void
data_sets_deinit(struct data_sets *s)
{
	for (size_t i = 0; i < s->count; i++) {
		drop_split(&s->items[i]);
		dataset_deinit(&s->items[i].cut);
		if (s->items[i].loaded)
			dataset_deinit(&s->items[i].all);
		s->items[i].loaded = false;
	}
}

static bool
load(const struct settings *settings, struct data_sets_item *item, const struct events *events)
{
	struct why why, said;

	item->tried_at = backoff_now();
	enum err e = data_guard(settings, item->settings, &why);
	if (!e)
		e = data_load(&item->all, item->settings, &why);
	if (e) {
		err_set(
		    &said, ERR_OK, "%s%s", settings_data_place(settings, item->settings), why.text);
		events_emit(events, EVENTS_ERROR, "data.failed",
		    EVENTS_PAIRS(
			EVENTS_S("name", item->settings->name), EVENTS_S("reason", said.text)));
		return false;
	}
	item->loaded = true;
	events_emit(events, EVENTS_INFO, "data.loaded",
	    EVENTS_PAIRS(
		EVENTS_S("name", item->settings->name), EVENTS_U("examples", item->all.count)));
	return true;
}

bool
data_sets_refresh(struct data_sets *s, const struct events *events)
{
	bool changed = false;

	for (size_t i = 0; i < s->count; i++) {
		struct data_sets_item *item = &s->items[i];
		if (!item->loaded &&
		    (item->tried_at <= 0 || backoff_now() - item->tried_at > TRY_AGAIN_S))
			changed |= load(s->settings, item, events);
	}
	return changed;
}

struct data_sets_item *
data_sets_find(struct data_sets *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].loaded && strcmp(s->items[i].settings->name, name) == 0)
			return &s->items[i];
	return NULL;
}

/* Of a text; 0 of all else. */
static uint64_t
tokens_of(const struct dataset *d)
{
	return d->rows && d->rows->tokens ? d->rows->items : 0;
}

uint64_t
data_sets_count(const struct data_sets_item *item, const struct data_spec *job)
{
	return allowance_examples(job, item->all.count, tokens_of(&item->all));
}

static bool
is_cut(const struct data_sets_item *item, uint32_t window)
{
	return window > 0 && item->all.features != window;
}

enum err
data_sets_whole(
    struct data_sets_item *item, const struct data_spec *job, const struct dataset **out)
{
	uint32_t window = job->window;

	*out = &item->all;
	if (!is_cut(item, window))
		return ERR_OK;
	if (item->cut.features != window) {
		drop_split(item);
		dataset_deinit(&item->cut);
		item->cut_id[0] = '\0';
		enum err e = dataset_cut(&item->cut, &item->all, window, NULL);
		if (e)
			return e;
	}
	*out = &item->cut;
	return ERR_OK;
}

/* Points to the training and validation share of the job's examples; if the job wants no validation share, the training share is the whole
 * set and no copy is made. seed: of job and device, so that a division stays the same. */
static enum err
split(struct data_sets_item *item, const struct data_spec *job, uint64_t seed,
    const struct dataset **train, const struct dataset **validation)
{
	static const struct dataset empty;
	const struct dataset *all;
	double share = job->validation;
	enum err e = data_sets_whole(item, job, &all);

	if (e)
		return e;
	if (share <= 0) {
		*train = all;
		*validation = &empty;
		return ERR_OK;
	}
	if (!item->split || item->share < share || item->share > share || item->seed != seed ||
	    item->train.features != all->features) {
		drop_split(item);
		e = examples_split(&item->train, &item->validation, all, share, seed);
		if (e)
			return e;
		item->split = true;
		item->share = share;
		item->seed = seed;
	}
	*train = &item->train;
	*validation = &item->validation;
	return ERR_OK;
}

enum err
data_sets_give(struct data_sets_item *item, const struct task *task, const uint8_t device[32],
    struct examples_task *out)
{
	const struct dataset *train, *validation;
	/* Round 0 stands for "in every round": the validation share of a job never changes. */
	enum err e = split(
	    item, &task->recipe.data, training_seed(task->seed, 0, device), &train, &validation);

	*out = (struct examples_task){.drawn = false};
	return e ? e : examples_task_init(out, task, device, train, validation);
}

char *
data_sets_examples(struct data_sets_item *item, const struct data_spec *job)
{
	if (job->validation > 0)
		return item->split_id;
	return is_cut(item, job->window) ? item->cut_id : item->all_id;
}

static void
put_data(struct offer *o, const struct data_sets_item *item)
{
	struct offer_data *d = &o->data[o->data_count++];
	char name[RECIPE_NAME_MAX];
	size_t n = data_names(&item->all, item->settings, 0, name);

	memset(d, 0, sizeof(*d));
	strcpy(d->name, item->settings->name);
	d->examples = item->all.count;
	d->tokens = tokens_of(&item->all);
	d->classes = n ? calloc(n, sizeof(*d->classes)) : NULL;
	d->class_count = d->classes ? n : 0;
	for (size_t i = 0; i < d->class_count; i++)
		data_names(&item->all, item->settings, i, d->classes[i]);
}

void
data_sets_offer(const struct data_sets *s, struct offer *offer)
{
	for (size_t i = 0; i < offer->data_count; i++)
		free(offer->data[i].classes);
	offer->data_count = 0;
	for (size_t i = 0; i < s->count && offer->data_count < MESSAGES_LIST_MAX; i++)
		if (s->items[i].loaded)
			put_data(offer, &s->items[i]);
}
