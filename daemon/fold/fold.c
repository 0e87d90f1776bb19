#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "counts.h"
#include "err.h"
#include "hex.h"
#include "late.h"
#include "log.h"
#include "measured.h"
#include "row.h"
#include "spool.h"
#include "stop.h"
#include "store.h"
#include "worker.h"

#define PIECE ((uint64_t)4 << 20) /* between two looks whether the program is to end */

/* --- reading */

static enum err
read_payload(void *input, void *out, size_t len, uint64_t at)
{
	const struct fold_input *in = input;

	return delta_file_read(&in->file, out, len, in->file.leaf_bytes + at);
}

static enum err
read_vector(void *context, unsigned vector, size_t delta, uint64_t first, size_t count, float *out)
{
	struct fold_input *in = &((struct fold *)context)->inputs[delta];
	const struct codec_source source = {read_payload, in};

	return vectors_read(&in->vectors, vector, &source, first, count, out);
}

static void
add_report(struct fold *w, const struct store_accept *a, const struct manifest *m)
{
	struct metric_training *t = &w->trainings[w->count - 1];
	struct report r;

	*t = (struct metric_training){.examples = m->examples,
	    .steps = m->steps,
	    .partial = m->flags & MANIFEST_PARTIAL,
	    .loss = (double)m->loss,
	    .accuracy = (double)m->accuracy};
	if (!a->report || messages_report_decode(&r, a->report, strlen(a->report), NULL))
		return;
	t->says = r.trained;
	own_metrics_add(&w->own, &r, (double)m->examples);
}

static enum err
grow_inputs(struct fold *w)
{
	struct fold_input *inputs = bytes_grow(w->inputs, w->count, &w->room, sizeof(*inputs));
	if (inputs)
		w->inputs = inputs;
	struct metric_training *trainings =
	    bytes_grow(w->trainings, w->count, &w->training_room, sizeof(*trainings));
	if (trainings)
		w->trainings = trainings;
	return inputs && trainings ? ERR_OK : ERR_NOMEM;
}

static enum err
add_input(void *ctx, const struct store_accept *a)
{
	struct fold *w = ctx;
	struct manifest m;

	enum err e = grow_inputs(w);
	if (!e)
		e = manifest_decode(&m, a->manifest, sizeof(a->manifest), NULL);
	if (e)
		return e;
	double weight = (double)m.examples, scale;
	struct fold_input *in = &w->inputs[w->count];
	*in = (struct fold_input){.file.fd = -1, .round = a->round, .vectors = vectors_of(&m)};
	memcpy(in->task, a->task, 16);
	memcpy(in->device, a->device, 32);
	memcpy(in->manifest, a->manifest, MANIFEST_LEN);
	late_apply(&w->f->spec->aggregate.staleness, w->f->row.round - a->round, &weight, &scale);
	e = fold_round_add(&w->round, weight, (double)m.normaliser, scale);
	if (e)
		return e;
	w->count++;
	w->out.row.reports++;
	w->out.row.examples += m.examples;
	w->out.row.bytes_up += a->body_bytes;
	add_report(w, a, &m);
	if (in->vectors.codec == NULL)
		return ERR_UNSUPPORTED;
	return a->round == w->f->row.round && w->f->spec->round.mode == ROUND_MODE_SYNCHRONOUS
	    ? measured_add(w, a, m.examples)
	    : ERR_OK;
}

static enum err
read_accepted(struct store_db *db, void *arg, struct why *why)
{
	struct fold *w = arg;

	(void)why;
	enum err e = store_accept_each(db, w->f->job_id, w->f->row.round, add_input, w);
	if (!e)
		e = metric_training_figures(&w->trained, w->f->spec, w->trainings, w->count);
	if (!e && w->f->spec->round.mode == ROUND_MODE_BUFFERED)
		e = measured_choose(w, db);
	return e;
}

/* One delta's file, opened and hashed where that is not known to be needless. */
static void
open_input(void *arg, unsigned i)
{
	struct fold *w = arg;
	struct fold_input *in = &w->inputs[i];

	in->e = spool_read(w->uses.spool, in->task, in->manifest, &in->file, &in->why);
	if (in->e == ERR_OK)
		in->e = spool_verify(w->uses.spool, in->task, &in->file, &in->why);
}

/* The reason names the delta: an operator must find it, and know whose it is. A stop may have removed those of its job meanwhile. */
static enum err
open_all(struct fold *w, struct why *why)
{
	char task[33], device[65];

	worker_parallel(w->threads, (unsigned)w->count, open_input, w);
	for (size_t i = 0; i < w->count; i++) {
		const struct fold_input *in = &w->inputs[i];
		if (!in->e)
			continue;
		if (in->e == ERR_CLOSED)
			return err_set(why, in->e, "the coordinator stops");
		if (!jobs_lives(w->engine, w->f->job))
			return err_set(why, in->e, "the job was stopped");
		w->lack.kind = LACKS_DELTA;
		memcpy(w->lack.id, in->task, sizeof(in->task));
		hex_encode(task, in->task, sizeof(in->task));
		hex_encode(device, in->device, sizeof(in->device));
		log_event(LOG_LEVEL_ERROR, "delta.damaged", LOG_S("job", w->f->job_hex),
		    LOG_U("round", w->f->row.round), LOG_S("device", device), LOG_S("task", task),
		    LOG_S("why", in->why.text));
		return err_set(
		    why, in->e, "delta %s of device %.16s: %.150s", task, device, in->why.text);
	}
	return ERR_OK;
}

/* The file that made the round fail. */
static void
fold_lacks(struct fold *w, enum engine_lack_kind kind, const uint8_t id[32])
{
	w->lack.kind = kind;
	memcpy(w->lack.id, id, 32);
}

enum err
fold_base(struct fold *w, struct why *why)
{
	enum err e = models_get(w->uses.models, w->f->row.base, &w->base, why);

	if (e)
		fold_lacks(w, LACKS_MODEL, w->f->row.base);
	return e;
}

enum err
fold_read(struct fold *w, struct why *why)
{
	enum err e = store_read(w->uses.store, read_accepted, w, why);

	own_metrics_choose(&w->own);
	return e;
}

enum err
fold_open(struct fold *w, struct why *why)
{
	enum err e = fold_read(w, why);

	if (!e && w->count == 0)
		return err_set(why, ERR_CORRUPT, "the round has no accepted delta");
	return e ? e : open_all(w, why);
}

/* --- folding */

static enum err
plan(struct fold *w, struct why *why)
{
	struct fold_round *r = &w->round;

	w->scale = w->f->schedule.scale;
	r->job = w->f->spec;
	r->table = w->f->table;
	r->number = w->f->row.round;
	r->factor = scale_next(&w->scale, &r->job->aggregate.scale, w->count);
	r->threads = w->threads;
	r->stop = w->uses.stop;
	r->read = read_vector;
	r->context = w;
	return fold_round_plan(r, why);
}

static enum err
read_state(struct fold *w, struct why *why)
{
	static const uint8_t none[32];
	const uint8_t *id = w->f->row.optimizer_state;
	struct server_step *s = &w->round.step;
	const size_t floats = server_step_floats(s);

	if (floats == 0)
		return ERR_OK;
	s->state = calloc(floats, sizeof(float));
	if (!s->state)
		return err_set(why, ERR_NOMEM, "no memory for the optimizer's state");
	if (memcmp(id, none, 32) == 0)
		return server_step_start(s, s->state, w->uses.stop);
	enum err e = models_state_get(w->uses.models, id, s->state, floats, why);
	if (e)
		fold_lacks(w, LACKS_STATE, id);
	return e;
}

/* The new model begins as its base. */
static enum err
make_room(struct fold *w, struct why *why)
{
	struct server_step *s = &w->round.step;
	struct download_step *d = &s->download;

	if (d->difference.codec) {
		d->payload = malloc(d->difference.payload_bytes);
		if (!d->payload)
			return err_set(why, ERR_NOMEM, "no memory for the difference");
	}
	s->data = malloc(s->table->bytes);
	if (!s->data)
		return err_set(why, ERR_NOMEM, "no memory for the new model");
	for (uint64_t at = 0; at < s->table->bytes; at += PIECE) {
		uint64_t left = s->table->bytes - at;
		memcpy(s->data + at, w->base->data + w->base->data_at + at,
		    (size_t)(left < PIECE ? left : PIECE));
		if (stop_asked(w->uses.stop))
			return ERR_CLOSED;
	}
	/* From now on its file may change: what counts was read. */
	enum err e = models_unchanged(w->uses.models, w->base, why);
	if (e)
		fold_lacks(w, LACKS_MODEL, w->f->row.base);
	return e;
}

enum err
fold_run(struct fold *w, struct why *why)
{
	enum err e = fold_base(w, why);

	if (!e)
		e = plan(w, why);
	if (!e)
		e = read_state(w, why);
	if (!e)
		e = fold_round_begin(&w->round, why);
	if (e)
		return e;
	e = fold_round_compare(&w->round);
	if (e)
		return err_set(why, e, "comparing the deltas: %s", err_name(e));
	e = make_room(w, why);
	if (e)
		return e;
	e = fold_round_run(&w->round);
	w->out.row.norm = w->round.norm;
	return e ? err_set(why, e, "folding: %s", err_name(e)) : ERR_OK;
}

void
fold_close(struct fold *w)
{
	for (size_t i = 0; i < w->count; i++)
		delta_file_close(&w->inputs[i].file);
}

void
fold_lighten(struct fold *w)
{
	struct server_step *s = &w->round.step;

	fold_round_deinit(&w->round);
	free(s->data);
	free(s->state);
	free(s->download.payload);
	s->data = NULL;
	s->state = NULL;
	s->download.payload = NULL;
	models_map_release(w->base);
	w->base = NULL;
}

void
fold_deinit(struct fold *w)
{
	fold_close(w);
	fold_lighten(w);
	free(w->inputs);
	free(w->trainings);
	free(w->measured);
	free(w->owned);
	own_metrics_deinit(&w->own);
	counts_free(w->counts);
}
