#include "rank.h"

#include <stdlib.h>
#include <string.h>

#include "orders.h"
#include "scoring.h"
#include "team.h"

struct rank {
	struct courier *courier;
	struct layout layout;
	unsigned replica, position;
	struct net *net;
	struct team *team;
	struct stage stages[NET_RANGES];
	size_t count;
	struct reduce *reduce; /* with several replicas */
	struct net_update how;
	/* The step. */
	struct rank_step now;
	struct stage_step step;
	struct pipeline pipeline; /* until the next flush, */
	uint32_t flushed; /* behind so many batches */
	struct pipeline_at at;
	struct pipeline_op next;
	bool has_next;
	uint32_t looked[NET_RANGES]; /* batches of an evaluation so far, at each stage */
	struct net_result *results;
	uint32_t results_room;
	enum err failed;
};

/* --- what a rank has */

static struct stage_place
place(const struct rank_task *task, unsigned replica, unsigned number)
{
	const struct layout *l = task->layout;

	return (struct stage_place){.layout = l,
	    .replica = replica,
	    .number = number,
	    .first = number == 0,
	    .last = number == layout_last(l),
	    .contexts = layout_contexts(l, number),
	    .first_contexts = layout_contexts(l, 0),
	    .max_batch = task->whole->max_batch,
	    .train = task->whole->train};
}

void
rank_parts(struct rank_parts *out, const struct rank_task *task, unsigned rank)
{
	const struct layout *l = task->layout;
	unsigned replica = rank / l->pipeline, stage = rank % l->pipeline;

	*out = (struct rank_parts){
	    .part = *task->whole, .count = 1, .replicas = l->replicas, .leads = rank == 0};
	out->part.first = l->cut[stage];
	out->part.last = l->cut[stage + 1];
	out->places[0] = place(task, replica, stage);
	if (l->ring && stage == 0) {
		unsigned last = layout_last(l);
		out->part.tail.first = l->cut[last];
		out->part.tail.last = l->cut[last + 1];
		out->places[1] = place(task, replica, last);
		out->places[1].range = 1;
		out->count = 2;
	}
	out->part.contexts = out->places[0].contexts;
	out->part.tail.contexts = out->count > 1 ? out->places[1].contexts : 0;
}

/* A net of several replicas hands its runs over, whatever the groups of a step. */
static struct net_update
own_update(const struct net_update *how, unsigned replicas)
{
	struct net_update own = *how;

	if (replicas > 1 && own.groups < 2)
		own.groups = 2;
	return own;
}

/* What the leader copies for others: inputs and answers of other replicas, answers of its own pipeline's last stage. */
static uint64_t
feed_bytes(const struct rank_parts *p, const struct net *whole)
{
	uint64_t in = net_inputs(whole) * sizeof(float),
		 out = net_labels(whole) > 0 ? net_labels(whole) * sizeof(int32_t)
					     : net_outputs(whole) * sizeof(float);
	uint64_t away = (p->replicas - 1) * (in + out);

	if (!p->places[p->count - 1].last)
		away += out;
	return (uint64_t)p->places[0].first_contexts * p->part.max_batch * away;
}

static enum err
leader_bytes(uint64_t *out, const struct rank_parts *p, struct why *why)
{
	struct net_part all = p->part;
	struct net *whole;

	all.first = 0;
	all.last = all.spec->layer_count;
	all.tail.last = 0;
	all.contexts = all.planned = 1;
	enum err e = net_new_part(&whole, &all, why);
	if (e)
		return e;
	*out += feed_bytes(p, whole) + ORDER_ELEMENTS * sizeof(float);
	net_free(whole);
	return ERR_OK;
}

enum err
rank_bytes(uint64_t *out, const struct rank_parts *parts, unsigned threads,
    const struct net_update *how, struct why *why)
{
	struct net_part part = parts->part;
	struct net *net = NULL;

	part.planned = threads > 0 ? threads : 1;
	enum err e = net_new_part(&net, &part, why);
	const struct net_update own =
	    how ? own_update(how, parts->replicas) : (struct net_update){0};
	if (!e && how)
		e = net_prepare(net, &own, why);
	if (!e) {
		*out = net_bytes(net);
		for (size_t i = 0; i < parts->count; i++) {
			struct stage_place place = parts->places[i];
			place.net = net;
			*out += stage_bytes(&place);
		}
		if (how && parts->replicas > 1)
			*out += reduce_bytes(net, parts->replicas, 0);
		if (parts->leads)
			e = leader_bytes(out, parts, why);
	}
	net_free(net);
	return e;
}

static enum err
make(struct rank *r, const struct rank_task *task, struct why *why)
{
	struct rank_parts parts;
	enum err e = team_new(&r->team, task->threads > 0 ? task->threads : 1);

	if (e)
		return err_set(why, e, "no memory for threads");
	const struct net_update own =
	    task->how ? own_update(task->how, r->layout.replicas) : (struct net_update){0};
	rank_parts(&parts, task, courier_rank(r->courier));
	parts.part.update = task->how ? &own : NULL;
	parts.part.team = r->team;
	parts.part.planned = 0;
	e = net_new_part(&r->net, &parts.part, why);
	for (size_t i = 0; !e && i < parts.count; i++) {
		parts.places[i].net = r->net;
		r->count++;
		e = stage_init(&r->stages[i], &parts.places[i]);
		if (e)
			err_set(why, e, "no memory for a stage");
	}
	return e;
}

enum err
rank_new(struct rank **out, struct courier *c, const struct rank_task *task, struct why *why)
{
	struct rank *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(why, ERR_NOMEM, "no memory for a rank");
	r->courier = c;
	r->layout = *task->layout;
	r->replica = courier_rank(c) / r->layout.pipeline;
	r->position = courier_rank(c) % r->layout.pipeline;
	enum err e = make(r, task, why);
	if (e)
		rank_free(r);
	else
		*out = r;
	return e;
}

void
rank_free(struct rank *r)
{
	if (!r)
		return;
	reduce_free(r->reduce);
	for (size_t i = 0; i < r->count; i++)
		stage_deinit(&r->stages[i], r->courier);
	net_free(r->net);
	team_free(r->team);
	free(r->results);
	free(r);
}

struct net *
rank_net(struct rank *r)
{
	return r->net;
}

enum err
rank_begin(struct rank *r, const struct net_update *how, struct why *why)
{
	const struct net_update own = own_update(how, r->layout.replicas);

	r->how = own;
	enum err e = net_prepare(r->net, &own, why);
	if (e || r->layout.replicas == 1 || r->reduce)
		return e;
	e = reduce_new(&r->reduce, r->courier, r->net, &r->layout, r->replica, r->position);
	return e ? err_set(why, e, "no memory for the sums of replicas") : ERR_OK;
}

/* --- a step */

static struct stage *
last_stage(struct rank *r)
{
	struct stage *s = &r->stages[r->count - 1];

	return s->last ? s : NULL;
}

static enum err
make_room(struct rank *r)
{
	if (!last_stage(r) || r->step.batches <= r->results_room)
		return ERR_OK;
	free(r->results);
	r->results_room = 0;
	r->results = calloc(r->step.batches, sizeof(*r->results));
	if (!r->results)
		return ERR_NOMEM;
	r->results_room = r->step.batches;
	return ERR_OK;
}

/* Up to the next flush. */
static void
begin_pipeline(struct rank *r)
{
	uint32_t left = r->step.batches - r->flushed,
		 flush = layout_flush(&r->layout, r->step.batches);

	r->pipeline =
	    (struct pipeline){r->layout.pipeline, r->layout.ring, left < flush ? left : flush};
	r->at = pipeline_begin(&r->pipeline, r->position);
	r->has_next = left > 0 && pipeline_next(&r->at, &r->next);
}

/* Batches of an evaluation go to the replicas in turns. */
struct layout_place
rank_place(const struct layout *l, bool alone, uint64_t batch)
{
	if (alone)
		return (struct layout_place){0, (uint32_t)batch};
	return (struct layout_place){
	    (unsigned)(batch % l->replicas), (uint32_t)(batch / l->replicas)};
}

uint64_t
rank_looked(const struct layout *l, bool alone, unsigned replica, uint32_t own)
{
	return alone ? own : (uint64_t)own * l->replicas + replica;
}

static uint32_t
looks_of(const struct rank *r, const struct rank_step *step)
{
	unsigned replicas = step->alone ? 1 : r->layout.replicas;

	if (r->replica >= replicas)
		return 0;
	return (uint32_t)((step->pieces + replicas - 1 - r->replica) / replicas);
}

enum err
rank_step(struct rank *r, const struct rank_step *step)
{
	r->now = *step;
	r->step = (struct stage_step){.number = step->number,
	    .drawn = step->drawn,
	    .seed = step->seed,
	    .batches = step->looks ? looks_of(r, step)
				   : layout_batches(&r->layout, r->replica, (uint32_t)step->pieces),
	    .looks = step->looks,
	    .layout = &r->layout,
	    .replica = r->replica};
	r->flushed = 0;
	enum err e = make_room(r);
	if (e)
		return e;
	if (step->looks)
		r->looked[0] = r->looked[1] = 0;
	else
		begin_pipeline(r);
	if (r->reduce && !step->looks)
		reduce_begin(r->reduce, step->number, (uint32_t)step->pieces);
	for (size_t i = 0; i < r->count; i++)
		stage_begin(&r->stages[i], r->courier, &r->step);
	return ERR_OK;
}

uint32_t
rank_batches(const struct rank *r)
{
	return r->step.batches;
}

enum err
rank_feed(struct rank *r, uint32_t batch, const struct net_batch *from, float share)
{
	if (last_stage(r))
		stage_feed_answer(last_stage(r), batch, from);
	return stage_feed_input(&r->stages[0], r->courier, batch, from, share);
}

/* A run ends with its last batch, or the step's. */
static bool
ends_run(const struct rank *r, uint32_t batch)
{
	return (batch + 1) % r->layout.run == 0 || batch + 1 == r->step.batches;
}

/* All of the rank's stages are done with the run: the first one is the last. */
static void
end_run(struct rank *r)
{
	if (r->reduce)
		reduce_hand(r->reduce);
	else if (r->how.groups > 1)
		net_fold(r->net);
}

static enum err
back(struct rank *r, struct stage *s, struct stage_pass *pass)
{
	bool ends = ends_run(r, pass->batch);
	enum err e = ERR_OK;

	if (s->last)
		pass->result = &r->results[pass->batch];
	if (ends && r->reduce) {
		e = reduce_await(r->reduce);
		pass->complete = reduce_complete;
		pass->context = r->reduce;
	}
	if (!e)
		e = stage_back(s, pass);
	if (!e && ends && s == &r->stages[0])
		end_run(r);
	return e;
}

static enum err
do_next(struct rank *r)
{
	const struct pipeline_op op = r->next;
	struct stage *s = op.stage == r->stages[0].number ? &r->stages[0] : &r->stages[1];
	struct stage_pass pass = {.courier = r->courier,
	    .step = &r->step,
	    .batch = r->flushed + op.batch,
	    .failed = &r->failed};
	enum err e = op.back ? back(r, s, &pass) : stage_forward(s, &pass);

	r->has_next = pipeline_next(&r->at, &r->next);
	if (r->has_next)
		return e;
	r->flushed += r->pipeline.batches;
	begin_pipeline(r);
	return e;
}

/* Has the batch's example not been given yet? */
static bool
waits_for_food(const struct rank *r, uint32_t fed)
{
	return courier_rank(r->courier) == 0 && !r->next.back && r->next.stage == 0 &&
	    r->flushed + r->next.batch >= fed;
}

static enum err
look(struct rank *r, size_t stage)
{
	struct stage *s = &r->stages[stage];
	uint32_t batch = r->looked[stage]++;
	const struct stage_pass pass = {.courier = r->courier,
	    .step = &r->step,
	    .batch = batch,
	    .failed = &r->failed,
	    .result = s->last ? &r->results[batch] : NULL};

	return stage_look(s, &pass, r->now.counts);
}

/* In a ring the last stage is as far behind the first one as the stages between need. */
static enum err
look_on(struct rank *r, uint32_t fed)
{
	uint32_t all = r->step.batches, *looked = r->looked;
	uint32_t lag = r->stages[0].contexts - 1;
	enum err e = ERR_OK;

	lag = lag < r->layout.pipeline ? lag : r->layout.pipeline;
	while (!e && looked[0] < all && looked[0] < fed) {
		e = look(r, 0);
		if (!e && r->count > 1 && looked[0] > lag)
			e = look(r, 1);
	}
	while (!e && r->count > 1 && looked[0] == all && looked[1] < all)
		e = look(r, 1);
	return e;
}

enum err
rank_work(struct rank *r, uint32_t fed)
{
	enum err e = ERR_OK;

	if (r->now.looks)
		return look_on(r, fed);
	while (!e && r->has_next && !waits_for_food(r, fed))
		e = do_next(r);
	return e;
}

/* --- the end of a step */

/* A norm's lanes on their way along the stages, then the factor back to all. */
struct norm {
	double lanes[NET_NORM_LANES];
	float factor;
};

static enum err
pass_on(struct rank *r, unsigned peer, bool sends, uint32_t edge, struct norm *norm)
{
	struct parcel p = {.peer = peer,
	    .sends = sends,
	    .head = {.kind = PARCEL_NORM, .edge = edge, .step = r->now.number},
	    .data = norm,
	    .bytes = sizeof(*norm)};

	courier_post(r->courier, &p);
	return courier_wait(r->courier, &p);
}

/* The lanes pass this rank's stage. */
static enum err
add_norm(struct rank *r, const struct stage *s, struct norm *norm)
{
	enum err e = s->first ? ERR_OK : pass_on(r, s->before, false, s->number, norm);

	if (e)
		return e;
	net_norm(r->net, &r->how, s->range, norm->lanes);
	return s->last ? ERR_OK : pass_on(r, s->behind, true, s->number + 1, norm);
}

static enum err
share_factor(struct rank *r, struct norm *norm)
{
	const unsigned edge = LINK_RANKS_MAX + 1;
	unsigned own = courier_rank(r->courier);
	enum err e = ERR_OK;

	if (!last_stage(r))
		return pass_on(r, layout_rank(&r->layout, r->replica, layout_last(&r->layout)),
		    false, edge, norm);
	norm->factor = net_norm_factor(&r->how, norm->lanes);
	for (unsigned s = 0; !e && s < r->layout.pipeline; s++) {
		unsigned peer = layout_rank(&r->layout, r->replica, s);
		if (peer != own)
			e = pass_on(r, peer, true, edge, norm);
	}
	return e;
}

enum err
rank_move(struct rank *r)
{
	struct norm norm = {.factor = 1};
	enum err e = r->reduce ? reduce_end(r->reduce) : ERR_OK;

	if (!e && r->how.clip > 0) {
		for (size_t i = 0; !e && i < r->count; i++)
			e = add_norm(r, &r->stages[i], &norm);
		if (!e)
			e = share_factor(r, &norm);
	}
	if (!e)
		net_move_scaled(r->net, &r->how, norm.factor);
	return e;
}

void
rank_fail(struct rank *r)
{
	if (!r->failed)
		r->failed = ERR_STATE;
}

enum err
rank_failure(const struct rank *r)
{
	return r->failed;
}

const struct net_result *
rank_results(const struct rank *r)
{
	return r->results;
}

float *
rank_parameters(struct rank *r, unsigned stage)
{
	float *w = net_params(r->net);

	return r->count > 1 && stage == r->stages[1].number
	    ? w + net_elements_before(r->net, r->layout.cut[stage])
	    : w;
}
