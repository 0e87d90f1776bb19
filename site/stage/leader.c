#include "leader.h"

#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "counts_pack.h"
#include "orders.h"
#include "recipe.h"
#include "tensor.h"
#include "window.h"

/* A copy of what a batch's stages elsewhere are fed with. */
struct feed {
	void *x, *answer;
	struct parcel input, answers;
};

struct leader {
	struct world *world;
	struct courier *courier; /* the world's */
	struct leader_task task;
	struct net *whole; /* figures only */
	struct rank *rank;
	struct window window;
	size_t x_bytes, answer_bytes; /* of an example; answers: of a net that is cut */
	size_t label_bytes;
	bool meets_input; /* the loss compares with the input */
	struct feed *feeds; /* by replica, then by place */
	uint32_t places;
	/* The step or evaluation under way. */
	struct rank_step now;
	bool under_way, given; /* given: the other ranks have the task */
	uint64_t fed; /* pieces or batches given */
	struct net_result *sums; /* of the training, the caller's */
	struct net_result *results; /* of each of its pieces */
	size_t room;
};

static unsigned
ranks(const struct leader *l)
{
	return layout_ranks(&l->task.layout);
}

static enum err
parameters(void *self, uint64_t first, size_t n, float *values, bool sets)
{
	struct leader *l = self;

	return sets ? window_set(&l->window, first, n, values)
		    : window_get(&l->window, first, n, values);
}

/* --- feeding */

static void
send_feed(struct leader *l, struct parcel *p, unsigned rank, struct parcel_head head, void *data,
    size_t bytes)
{
	*p = (struct parcel){
	    .peer = rank, .sends = true, .head = head, .data = data, .bytes = bytes};
	courier_post(l->courier, p);
}

/* Labels, then targets, as the last stage wants them. */
static void
copy_answer(const struct leader *l, const struct net_batch *b, void *to)
{
	size_t labels = b->n * l->label_bytes, all = b->n * l->answer_bytes;
	const float *targets = l->meets_input ? b->x : b->targets;

	if (labels > 0)
		memcpy(to, b->labels, labels);
	if (all > labels)
		memcpy((char *)to + labels, targets, all - labels);
}

/* Gives a replica's first and last stage, as far as they are elsewhere, a batch's input and answer. */
static enum err
feed_away(struct leader *l, struct layout_place at, const struct net_batch *b, float share)
{
	const struct layout *y = &l->task.layout;
	struct feed *f = &l->feeds[at.replica * l->places + at.batch % l->places];
	unsigned first = layout_rank(y, at.replica, 0),
		 last = layout_rank(y, at.replica, layout_last(y));
	struct parcel_head head = {.kind = PARCEL_INPUT,
	    .step = l->now.number,
	    .batch = at.batch,
	    .n = b->n,
	    .whole = b->whole,
	    .share = share};
	size_t bytes = b->x ? b->n * l->x_bytes : 0; /* none: it is not to be computed */
	enum err e = courier_wait(l->courier, &f->input);

	if (!e)
		e = courier_wait(l->courier, &f->answers);
	if (e)
		return e;
	if (last != 0 && l->answer_bytes > 0) {
		head.kind = PARCEL_LABELS;
		head.edge = layout_last(y);
		if (bytes > 0)
			copy_answer(l, b, f->answer);
		send_feed(l, &f->answers, last, head, f->answer, b->n * l->answer_bytes);
	}
	if (first == 0)
		return ERR_OK;
	head.kind = PARCEL_INPUT;
	head.edge = 0;
	if (bytes > 0)
		memcpy(f->x, b->x, bytes);
	send_feed(l, &f->input, first, head, f->x, bytes);
	return ERR_OK;
}

/* Of an evaluation that is broken off: a batch that cannot be computed. */
static enum err
feed_empty(struct leader *l, struct layout_place at)
{
	const struct net_batch none = {.n = 1};
	enum err e = feed_away(l, at, &none, 1);

	if (e || at.replica > 0)
		return e;
	e = rank_feed(l->rank, at.batch, &none, 1);
	return e ? e : rank_work(l->rank, at.batch + 1);
}

static enum err
feed(struct leader *l, struct layout_place at, const struct net_batch *batch, float share)
{
	struct net_batch b = *batch;

	if (l->meets_input)
		b.targets = b.x;
	enum err e = feed_away(l, at, batch, share);
	if (e || at.replica > 0)
		return e;
	e = rank_feed(l->rank, at.batch, &b, share);
	return e ? e : rank_work(l->rank, at.batch + 1);
}

/* --- steps */

/* A step that rank 0 cannot go on with would be waited for by all others. */
static enum err
give_up(struct leader *l, enum err e)
{
	if (e)
		courier_abort(l->courier);
	return e;
}

static enum err
begin(void *self, const struct net_update *how, struct why *why)
{
	struct leader *l = self;
	const struct order o = {.kind = ORDER_BEGIN, .how = *how};
	enum err e = window_forget(&l->window);

	if (!e)
		e = world_order_all(l->world, ranks(l), &o);
	return e ? err_set(why, e, "the other ranks are gone")
		 : world_answers(l->world, ranks(l), rank_begin(l->rank, how, why), why);
}

static enum err
make_room(struct leader *l, uint64_t pieces)
{
	if (pieces <= l->room)
		return ERR_OK;
	free(l->results);
	l->room = 0;
	l->results = calloc((size_t)pieces, sizeof(*l->results));
	if (!l->results)
		return ERR_NOMEM;
	l->room = (size_t)pieces;
	return ERR_OK;
}

static enum err
start(struct leader *l, const struct rank_step *step)
{
	struct order o = {
	    .kind = step->looks ? ORDER_LOOK : ORDER_STEP, .step = *step, .counts = step->counts};
	enum err e = make_room(l, step->pieces);

	if (!e)
		e = window_forget(&l->window);
	l->now = *step;
	l->now.number = o.step.number = ++l->world->numbers;
	l->fed = 0;
	o.step.counts = NULL;
	if (!e)
		e = world_order_all(l->world, ranks(l), &o);
	if (!e)
		e = give_up(l, rank_step(l->rank, &l->now));
	l->under_way = !e;
	return e;
}

/* A step of one batch forms no gradient of the whole network: it is made as one device makes it. */
static enum err
step_alone(struct leader *l, const struct net_update *how, const struct net_batch *b,
    struct net_result *sums)
{
	struct net_result got;
	enum err e = window_forget(&l->window);

	if (!e)
		e = net_step(rank_net(l->rank), b, how, &got);
	if (!e)
		stepper_add(sums, &got);
	return e;
}

static enum err
batch(void *self, const struct net_update *how, const struct stepper_piece *piece,
    struct net_result *sums)
{
	struct leader *l = self;
	const struct rank_step step = {
	    .drawn = piece->step, .seed = l->task.seed, .pieces = piece->count};

	if (how->parts == 1)
		return step_alone(l, how, &piece->batch, sums);
	enum err e = l->under_way ? ERR_OK : start(l, &step);
	if (e)
		return e;
	l->sums = sums;
	l->fed++;
	return give_up(
	    l, feed(l, layout_place(&l->task.layout, piece->number), &piece->batch, piece->share));
}

static enum err
fold(void *self)
{
	(void)self;
	return ERR_OK;
}

/* The piece of the step, or the batch of the evaluation, that a replica's own batch is. */
static uint64_t
number_of(const struct leader *l, unsigned replica, uint32_t batch)
{
	const struct layout *y = &l->task.layout;

	return l->now.looks ? rank_looked(y, l->now.alone, replica, batch)
			    : layout_piece(y, replica, batch);
}

static enum err
place_results(struct leader *l, unsigned rank, const struct net_result *results, uint32_t n)
{
	unsigned replica = rank / l->task.layout.pipeline;

	for (uint32_t b = 0; b < n; b++) {
		uint64_t number = number_of(l, replica, b);
		if (number >= l->now.pieces)
			return ERR_CORRUPT;
		l->results[number] = results[b];
	}
	return ERR_OK;
}

static enum err
hear_results(struct leader *l, unsigned rank, uint32_t n)
{
	struct net_result *results = calloc(n, sizeof(*results));
	enum err e = results
	    ? world_receive(l->world, rank, PARCEL_REPORT, 1, results, n * sizeof(*results))
	    : ERR_NOMEM;

	if (!e)
		e = place_results(l, rank, results, n);
	free(results);
	return e;
}

static enum err
hear_counts(struct leader *l, unsigned rank)
{
	size_t bytes = counts_pack_bytes(l->now.counts);
	void *packed = malloc(bytes);
	enum err e =
	    packed ? world_receive(l->world, rank, PARCEL_REPORT, 2, packed, bytes) : ERR_NOMEM;

	if (!e)
		counts_pack_add(l->now.counts, packed);
	free(packed);
	return e;
}

/* A failure of its own says more than that a rank before it has failed. */
static enum err
worse(enum err a, enum err b)
{
	return a && a != ERR_STATE ? a : b ? b : a;
}

static enum err
hear_report(struct leader *l, unsigned rank, enum err *failed)
{
	struct answer a;
	enum err e = world_receive(l->world, rank, PARCEL_REPORT, 0, &a, sizeof(a));

	if (e)
		return e;
	if (a.failed < 0 || a.failed >= ERR_COUNT || a.batches > l->now.pieces)
		return ERR_CORRUPT;
	*failed = worse(*failed, (enum err)a.failed);
	if (a.batches == 0)
		return ERR_OK;
	e = hear_results(l, rank, a.batches);
	return !e && l->now.counts ? hear_counts(l, rank) : e;
}

/* All ranks' figures of the step, added in the order of its pieces. */
static enum err
finish(struct leader *l, struct net_result *sums)
{
	const struct net_result *own = rank_results(l->rank);
	enum err failed = rank_failure(l->rank);
	enum err e = own ? place_results(l, 0, own, rank_batches(l->rank)) : ERR_OK;

	for (unsigned r = 1; !e && r < ranks(l); r++)
		e = hear_report(l, r, &failed);
	l->under_way = false;
	if (e || failed)
		return e ? give_up(l, e) : failed;
	for (uint64_t i = 0; i < l->now.pieces; i++)
		stepper_add(sums, &l->results[i]);
	return ERR_OK;
}

static enum err
step(void *self, const struct net_update *how)
{
	struct leader *l = self;

	if (how->parts == 1)
		return ERR_OK;
	enum err e = rank_work(l->rank, UINT32_MAX);
	if (!e)
		e = rank_move(l->rank);
	return e ? give_up(l, e) : finish(l, l->sums);
}

static enum err
evaluate(void *self, const struct net_batch *batch, uint64_t batches, struct net_result *sums,
    struct counts *counts)
{
	struct leader *l = self;
	/* Sums of real numbers are added one after the other. */
	const struct rank_step step = {.pieces = batches,
	    .looks = true,
	    .counts = counts,
	    .alone = counts && counts->wanted.regression};
	enum err e = l->under_way ? ERR_OK : start(l, &step);

	if (!e && batch)
		return give_up(
		    l, feed(l, rank_place(&l->task.layout, step.alone, l->fed++), batch, 1));
	if (!e)
		e = give_up(l, rank_work(l->rank, UINT32_MAX));
	return e ? e : finish(l, sums);
}

/* --- a task */

static enum err
make_feeds(struct leader *l)
{
	const struct layout *y = &l->task.layout;
	uint32_t most = l->task.whole.max_batch;

	l->places = layout_contexts(y, 0);
	l->feeds = calloc((size_t)y->replicas * l->places, sizeof(*l->feeds));
	if (!l->feeds)
		return ERR_NOMEM;
	for (unsigned q = 0; q < y->replicas; q++)
		for (uint32_t i = 0; i < l->places; i++) {
			struct feed *f = &l->feeds[q * l->places + i];
			bool input = layout_rank(y, q, 0) != 0,
			     answer = layout_rank(y, q, layout_last(y)) != 0;
			if ((input && !(f->x = malloc(most * l->x_bytes))) ||
			    (answer && !(f->answer = malloc(most * l->answer_bytes + 1))))
				return ERR_NOMEM;
		}
	return ERR_OK;
}

/* The whole network as figures, and what they say. */
static enum err
describe(struct leader *l, struct why *why)
{
	const struct layout *y = &l->task.layout;
	struct net_part whole = l->task.whole;
	bool cut = layout_last(y) > 0;

	if (whole.train && l->task.how.parts == 1 && layout_ranks(y) > 1)
		return err_set(why, ERR_UNSUPPORTED, "a step of one batch is for one rank");
	whole.planned = 1;
	enum err e = net_new_part(&l->whole, &whole, why);
	if (e)
		return e;
	size_t targets = net_targets(l->whole);
	l->meets_input = cut && l->task.recipe->net.target_input;
	if (l->meets_input)
		targets = net_inputs(l->whole);
	l->x_bytes = net_inputs(l->whole) * sizeof(float);
	l->label_bytes = net_labels(l->whole) * sizeof(int32_t);
	l->answer_bytes = l->label_bytes + targets * sizeof(float);
	e = window_init(&l->window, l->world, y, l->whole);
	return e ? e : make_feeds(l);
}

static struct order
order_of_task(const struct leader *l)
{
	const struct leader_task *t = &l->task;

	return (struct order){.kind = ORDER_TASK,
	    .layout = t->layout,
	    .text = recipe_text_bytes(t->recipe->text),
	    .max_bytes = t->max_bytes,
	    .classes = (uint32_t)t->whole.classes,
	    .max_batch = t->whole.max_batch,
	    .threads = t->threads,
	    .train = t->whole.train,
	    .recompute = t->whole.recompute,
	    .how = t->how};
}

static enum err
make_own(struct leader *l, struct why *why)
{
	struct net_part whole = l->task.whole;

	whole.max_bytes = l->task.max_bytes;
	const struct rank_task task = {
	    &whole, &l->task.layout, l->task.threads, whole.train ? &l->task.how : NULL};
	enum err e = rank_new(&l->rank, l->courier, &task, why);
	l->window.own = l->rank;
	return !e && whole.train ? rank_begin(l->rank, &l->task.how, why) : e;
}

static enum err
give_task(struct leader *l, struct why *why)
{
	const struct order o = order_of_task(l);
	const struct recipe_text *text = l->task.recipe->text;
	enum err e = world_order_all(l->world, ranks(l), &o);

	if (!e)
		e = world_send_all(l->world, ranks(l), PARCEL_TEXT, recipe_text_all(text),
		    recipe_text_bytes(text));
	return e ? err_set(why, e, "the other ranks are gone")
		 : world_answers(l->world, ranks(l), make_own(l, why), why);
}

enum err
leader_new(
    struct leader **out, struct world *world, const struct leader_task *task, struct why *why)
{
	struct leader *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(why, ERR_NOMEM, "no memory for the site's leader");
	l->world = world;
	l->courier = world->courier;
	l->task = *task;
	enum err e = describe(l, why);
	if (e == ERR_NOMEM)
		err_set(why, e, "no memory for the site's leader");
	if (!e) {
		e = give_task(l, why);
		l->given = true;
	}
	if (e)
		leader_free(l);
	else
		*out = l;
	return e;
}

struct stepper
leader_stepper(struct leader *l)
{
	static const struct stepper_calls calls = {
	    .begin = begin,
	    .batch = batch,
	    .fold = fold,
	    .step = step,
	    .evaluate = evaluate,
	    .parameters = parameters,
	};

	return (struct stepper){&calls, l, l->whole, l->task.layout.replicas};
}

/* What an evaluation that is broken off still waits for: batches without bytes. */
static void
feed_nothing(struct leader *l)
{
	const struct layout *y = &l->task.layout;
	struct net_result sums = {.loss = 0};
	enum err e = ERR_OK;

	rank_fail(l->rank);
	for (; !e && l->fed < l->now.pieces; l->fed++)
		e = feed_empty(l, rank_place(y, l->now.alone, l->fed));
	if (!e)
		e = rank_work(l->rank, UINT32_MAX);
	if (!give_up(l, e))
		(void)finish(l, &sums);
}

void
leader_free(struct leader *l)
{
	const struct order o = {.kind = ORDER_LEAVE};

	if (!l)
		return;
	if (l->under_way && l->now.looks)
		feed_nothing(l);
	if (l->given)
		(void)!world_order_all(l->world, ranks(l), &o);
	rank_free(l->rank);
	net_free(l->whole);
	for (size_t i = 0; l->feeds && i < (size_t)l->task.layout.replicas * l->places; i++) {
		free(l->feeds[i].x);
		free(l->feeds[i].answer);
	}
	free(l->feeds);
	window_deinit(&l->window);
	free(l->results);
	free(l);
}
