#include "stage.h"

#include <stdlib.h>
#include <string.h>

#include "pretend.h"
#include "scoring.h"

static unsigned
neighbour(const struct stage_place *p, unsigned stage)
{
	return layout_rank(p->layout, p->replica, stage);
}

/* Labels and targets of a whole net's example; of a part all that the loss is compared with. */
static size_t
answer_bytes(const struct net *net)
{
	return net_labels(net) * sizeof(int32_t) + net_targets(net) * sizeof(float);
}

/* Sizes. */
static void
describe(struct stage *s, const struct stage_place *p)
{
	struct net_edges edges = net_range_edges(p->net, p->range);

	*s = (struct stage){.net = p->net,
	    .range = p->range,
	    .number = p->number,
	    .first = p->first,
	    .last = p->last,
	    .context = p->range > 0 ? p->first_contexts : 0,
	    .contexts = p->contexts,
	    .max_batch = p->max_batch,
	    .in = edges.in,
	    .out = edges.out};
	if (s->last) {
		s->label_bytes = net_labels(p->net) * sizeof(int32_t);
		s->answer_bytes = answer_bytes(p->net);
		/* As many as inputs of the first stage, beside which they are sent. */
		s->answer_count = p->first_contexts;
	}
}

static void
find_neighbours(struct stage *s, const struct stage_place *p)
{
	s->own = neighbour(p, p->number);
	s->fed = s->own == 0;
	s->before = p->number > 0 ? neighbour(p, p->number - 1) : 0;
	s->behind = neighbour(p, p->number + 1);
	s->layers = p->layout->cut[p->number + 1] - p->layout->cut[p->number];
}

static size_t
edge_bytes(const struct stage *s, size_t floats)
{
	return s->max_batch * floats * sizeof(float);
}

uint64_t
stage_bytes(const struct stage_place *place)
{
	struct stage s;
	uint64_t gradients = place->train ? STAGE_GRADIENTS : 0;

	describe(&s, place);
	return s.contexts * (edge_bytes(&s, s.in) + sizeof(*s.batches)) +
	    s.answer_count * (s.max_batch * s.answer_bytes + sizeof(*s.answers)) +
	    gradients *
	    ((s.last ? 0 : edge_bytes(&s, s.out)) + (s.first ? 0 : edge_bytes(&s, s.in)));
}

/* A byte at least, so that no memory is no mistake. */
static bool
take(void *where, size_t bytes)
{
	void *p = malloc(bytes > 0 ? bytes : 1);

	memcpy(where, &p, sizeof(p));
	return p;
}

enum err
stage_init(struct stage *s, const struct stage_place *place)
{
	bool fits;

	describe(s, place);
	find_neighbours(s, place);
	s->batches = calloc(s->contexts, sizeof(*s->batches));
	s->answers = calloc(s->answer_count + 1, sizeof(*s->answers));
	if (!s->batches || !s->answers)
		return ERR_NOMEM;
	fits = true;
	for (uint32_t i = 0; fits && i < s->contexts; i++)
		fits = take(&s->batches[i].x, edge_bytes(s, s->in));
	for (uint32_t i = 0; fits && i < s->answer_count; i++)
		fits = take(&s->answers[i].data, s->max_batch * s->answer_bytes);
	for (int i = 0; fits && place->train && i < STAGE_GRADIENTS; i++)
		fits = (s->last || take(&s->gradient_in[i], edge_bytes(s, s->out))) &&
		    (s->first || take(&s->gradient_out[i], edge_bytes(s, s->in)));
	return fits ? ERR_OK : ERR_NOMEM;
}

/* What was sent last has arrived, as all have ended the step; the courier may still have to look that it has. After a failure nobody looks. */
static void
settle_sends(struct stage *s, struct courier *c)
{
	for (uint32_t i = 0; s->batches && i < s->contexts; i++)
		(void)!courier_wait(c, &s->batches[i].out);
	for (int i = 0; i < STAGE_GRADIENTS; i++)
		(void)!courier_wait(c, &s->gradient_leaves[i]);
}

void
stage_deinit(struct stage *s, struct courier *c)
{
	settle_sends(s, c);
	for (uint32_t i = 0; s->batches && i < s->contexts; i++)
		free(s->batches[i].x);
	for (uint32_t i = 0; s->answers && i < s->answer_count; i++)
		free(s->answers[i].data);
	for (int i = 0; i < STAGE_GRADIENTS; i++) {
		free(s->gradient_in[i]);
		free(s->gradient_out[i]);
	}
	free(s->batches);
	free(s->answers);
	*s = (struct stage){.net = NULL};
}

static struct stage_batch *
batch_at(const struct stage *s, uint32_t batch)
{
	return &s->batches[batch % s->contexts];
}

static struct stage_answer *
answer_at(const struct stage *s, uint32_t batch)
{
	return &s->answers[batch % s->answer_count];
}

static struct parcel_head
head_of(const struct stage_step *step, enum parcel_kind kind, unsigned edge, uint32_t batch)
{
	return (struct parcel_head){
	    .kind = kind, .edge = edge, .step = step->number, .batch = batch};
}

static void
await_input(struct stage *s, struct courier *c, const struct stage_step *step, uint32_t batch)
{
	struct stage_batch *b = batch_at(s, batch);

	if (batch >= step->batches || (s->first && s->fed))
		return;
	b->in = (struct parcel){.peer = s->first ? s->feeder : s->before,
	    .head = head_of(step, s->first ? PARCEL_INPUT : PARCEL_OUTPUT, s->number, batch),
	    .data = b->x,
	    .bytes = edge_bytes(s, s->in)};
	courier_post(c, &b->in);
}

static void
await_answer(struct stage *s, struct courier *c, const struct stage_step *step, uint32_t batch)
{
	if (batch >= step->batches || !s->last || s->fed || s->answer_bytes == 0)
		return;
	struct stage_answer *a = answer_at(s, batch);
	a->in = (struct parcel){.peer = s->feeder,
	    .head = head_of(step, PARCEL_LABELS, s->number, batch),
	    .data = a->data,
	    .bytes = s->max_batch * s->answer_bytes};
	courier_post(c, &a->in);
}

static void
await_gradient(struct stage *s, struct courier *c, const struct stage_step *step, uint32_t batch)
{
	struct parcel *p = &s->gradient_arrives[batch % STAGE_GRADIENTS];

	if (batch >= step->batches || s->last)
		return;
	*p = (struct parcel){.peer = s->behind,
	    .head = head_of(step, PARCEL_GRADIENT, s->number, batch),
	    .data = s->gradient_in[batch % STAGE_GRADIENTS],
	    .bytes = edge_bytes(s, s->out)};
	courier_post(c, p);
}

void
stage_begin(struct stage *s, struct courier *c, const struct stage_step *step)
{
	for (uint32_t i = 0; i < s->contexts; i++)
		await_input(s, c, step, i);
	for (uint32_t i = 0; i < s->answer_count; i++)
		await_answer(s, c, step, i);
	for (uint32_t i = 0; !step->looks && i < STAGE_GRADIENTS; i++)
		await_gradient(s, c, step, i);
}

enum err
stage_feed_input(
    struct stage *s, struct courier *c, uint32_t batch, const struct net_batch *from, float share)
{
	struct stage_batch *b = batch_at(s, batch);
	/* The output of layers that change only the shape is the input. */
	enum err e = courier_wait(c, &b->out);

	if (e)
		return e;
	if (from->x)
		memcpy(b->x, from->x, from->n * s->in * sizeof(float));
	b->n = from->n;
	b->share = share;
	b->whole = from->whole;
	return ERR_OK;
}

void
stage_feed_answer(struct stage *s, uint32_t batch, const struct net_batch *from)
{
	struct stage_answer *a = answer_at(s, batch);
	size_t labels = from->n * s->label_bytes, all = from->n * s->answer_bytes;

	if (labels > 0 && from->x)
		memcpy(a->data, from->labels, labels);
	if (all > labels && from->x)
		memcpy((char *)a->data + labels, from->targets, all - labels);
}

/* Its input, and whether the rank before has failed. */
static enum err
take_input(struct stage *s, const struct stage_pass *p, struct stage_batch *b)
{
	if (s->first && s->fed)
		return ERR_OK;
	enum err e = courier_wait(p->courier, &b->in);
	if (e)
		return e;
	b->n = b->in.head.n;
	b->share = b->in.head.share;
	b->whole = b->in.head.whole;
	if (b->n == 0 || b->n > s->max_batch ||
	    (b->in.got > 0 && b->in.got != b->n * s->in * sizeof(float)))
		return ERR_CORRUPT;
	if (b->in.got == 0 && !*p->failed)
		*p->failed = ERR_STATE;
	return ERR_OK;
}

static enum err
take_answer(
    struct stage *s, const struct stage_pass *p, struct stage_batch *b, struct net_batch *to)
{
	if (!s->last || s->answer_bytes == 0)
		return ERR_OK;
	struct stage_answer *a = answer_at(s, p->batch);
	enum err e = s->fed ? ERR_OK : courier_wait(p->courier, &a->in);
	if (e)
		return e;
	if (!s->fed && (a->in.head.n != b->n || a->in.got != b->n * s->answer_bytes))
		return ERR_CORRUPT;
	size_t labels = b->n * s->label_bytes;
	to->labels = labels > 0 ? a->data : NULL;
	to->targets = s->answer_bytes > s->label_bytes ? (void *)((char *)a->data + labels) : NULL;
	return ERR_OK;
}

static void
send_output(struct stage *s, const struct stage_pass *p, struct stage_batch *b)
{
	const float *y = net_context_output(s->net, s->context + p->batch % s->contexts);

	b->out = (struct parcel){.peer = s->behind,
	    .sends = true,
	    .head = head_of(p->step, PARCEL_OUTPUT, s->number + 1, p->batch),
	    .data = (void *)(uintptr_t)y,
	    .bytes = *p->failed ? 0 : b->n * s->out * sizeof(float)};
	b->out.head.n = b->n;
	b->out.head.share = b->share;
	b->out.head.whole = b->whole;
	courier_post(p->courier, &b->out);
}

/* What a pass forward begins with: its operands, and the room for its output. */
static enum err
prepare(struct stage *s, const struct stage_pass *p, struct net_batch *out)
{
	struct stage_batch *b = batch_at(s, p->batch);
	enum err e = take_input(s, p, b);

	*out = (struct net_batch){.x = b->x, .n = b->n, .whole = b->whole};
	if (!e)
		e = take_answer(s, p, b, out);
	return e ? e : courier_wait(p->courier, &b->out);
}

/* A pass over the layers, or a sleep in its place (pretend.h). */
static enum err
compute(struct stage *s, uint32_t context, const struct net_batch *batch)
{
	if (!pretend_on())
		return net_forward(s->net, context, batch);
	pretend_pass(s->own, s->layers, false);
	return ERR_OK;
}

static enum err
compute_back(struct stage *s, uint32_t context, const struct net_gradients *g,
    const struct stage_batch *b, struct net_result *result)
{
	if (!pretend_on())
		return net_backward(s->net, context, g, result);
	pretend_pass(s->own, s->layers, true);
	if (result)
		*result = (struct net_result){.weight = b->n};
	return ERR_OK;
}

enum err
stage_forward(struct stage *s, const struct stage_pass *p)
{
	struct stage_batch *b = batch_at(s, p->batch);
	uint32_t context = s->context + p->batch % s->contexts;
	struct net_batch batch;
	enum err e = prepare(s, p, &batch);

	if (e)
		return e;
	b->draw = (struct draw){.seed = p->step->seed,
	    .step = p->step->drawn,
	    .micro_batch = layout_piece(p->step->layout, p->step->replica, p->batch)};
	batch.draw = &b->draw;
	if (!*p->failed)
		*p->failed = compute(s, context, &batch);
	if (!s->last)
		send_output(s, p, b);
	return ERR_OK;
}

static enum err
take_gradient(struct stage *s, const struct stage_pass *p, const struct stage_batch *b)
{
	struct parcel *in = &s->gradient_arrives[p->batch % STAGE_GRADIENTS];

	if (s->last)
		return ERR_OK;
	enum err e = courier_wait(p->courier, in);
	if (e)
		return e;
	if (in->got == 0 && !*p->failed)
		*p->failed = ERR_STATE;
	return in->got == 0 || in->got == b->n * s->out * sizeof(float) ? ERR_OK : ERR_CORRUPT;
}

static void
send_gradient(struct stage *s, const struct stage_pass *p, const struct stage_batch *b)
{
	struct parcel *out = &s->gradient_leaves[p->batch % STAGE_GRADIENTS];

	*out = (struct parcel){.peer = s->before,
	    .sends = true,
	    .head = head_of(p->step, PARCEL_GRADIENT, s->number - 1, p->batch),
	    .data = s->gradient_out[p->batch % STAGE_GRADIENTS],
	    .bytes = *p->failed ? 0 : b->n * s->in * sizeof(float)};
	courier_post(p->courier, out);
}

enum err
stage_back(struct stage *s, const struct stage_pass *p)
{
	struct stage_batch *b = batch_at(s, p->batch);
	uint32_t way = p->batch % STAGE_GRADIENTS;
	const struct net_gradients g = {.output = s->last ? NULL : s->gradient_in[way],
	    .input = s->first ? NULL : s->gradient_out[way],
	    .share = b->share,
	    .complete = p->complete,
	    .context = p->context};
	enum err e = take_gradient(s, p, b);

	if (!e)
		e = courier_wait(p->courier, &s->gradient_leaves[way]);
	if (e)
		return e;
	if (!*p->failed)
		*p->failed = compute_back(s, s->context + p->batch % s->contexts, &g, b, p->result);
	if (!s->first)
		send_gradient(s, p, b);
	await_input(s, p->courier, p->step, p->batch + s->contexts);
	await_gradient(s, p->courier, p->step, p->batch + STAGE_GRADIENTS);
	if (s->last)
		await_answer(s, p->courier, p->step, p->batch + s->answer_count);
	return ERR_OK;
}

enum err
stage_look(struct stage *s, const struct stage_pass *p, struct counts *counts)
{
	struct stage_batch *b = batch_at(s, p->batch);
	struct net_batch batch;
	enum err e = prepare(s, p, &batch);

	if (e)
		return e;
	if (!*p->failed)
		*p->failed =
		    net_look(s->net, s->context + p->batch % s->contexts, &batch, p->result);
	if (!s->last)
		send_output(s, p, b);
	else if (counts && !*p->failed)
		scoring_batch(counts, s->net,
		    net_context_output(s->net, s->context + p->batch % s->contexts), &batch);
	if (b->out.data == b->x && (e = courier_wait(p->courier, &b->out)))
		return e;
	await_input(s, p->courier, p->step, p->batch + s->contexts);
	if (s->last)
		await_answer(s, p->courier, p->step, p->batch + s->answer_count);
	return ERR_OK;
}
