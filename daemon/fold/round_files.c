#include "round_files.h"

#include <string.h>

#include "buf.h"
#include "err.h"
#include "hex.h"
#include "job.h"
#include "modelfile.h"
#include "row.h"

static enum err
write_model(struct round_files *r, struct fold *w, struct why *why)
{
	struct modelfile_meta meta = {.round = w->f->row.round};
	struct engine_outcome *o = &w->out;
	struct buf head;

	memcpy(meta.job, w->f->job_hex, sizeof(meta.job));
	hex_encode(meta.base, w->f->row.base, 32);
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(&head, w->f->table, &meta);
	if (!e)
		e = models_file_begin(w->uses.models, &r->model, why);
	if (!e)
		e = models_file_add(r->model, head.data, head.len, why);
	if (!e)
		e = models_file_add(r->model, w->round.step.data, w->f->table->bytes, why);
	if (!e)
		e = models_file_end(r->model, o->row.model, why);
	o->model_bytes = head.len + w->f->table->bytes;
	buf_deinit(&head);
	return e;
}

static enum err
write_difference(struct round_files *r, struct fold *w, struct why *why)
{
	struct difference d = w->round.step.download.difference;

	if (!d.codec)
		return ERR_OK;
	memcpy(d.job, w->f->job_id, sizeof(d.job));
	d.round = w->f->row.round;
	memcpy(d.from, w->f->row.base, 32);
	memcpy(d.to, w->out.row.model, 32);
	w->out.difference_bytes = DIFFERENCE_HEAD + d.payload_bytes;
	return models_difference_write(
	    w->uses.models, &d, w->round.step.download.payload, &r->difference, why);
}

static enum err
write_state(struct round_files *r, struct fold *w, struct why *why)
{
	const struct server_step *s = &w->round.step;

	if (!s->state)
		return ERR_OK;
	enum err e = models_file_begin(w->uses.models, &r->state, why);
	if (!e)
		e = models_file_add(r->state, s->state, server_step_floats(s) * sizeof(float), why);
	return e ? e : models_file_end(r->state, w->out.row.optimizer_state, why);
}

enum err
round_files_write(struct round_files *r, struct fold *w, struct why *why)
{
	if (w->out.row.state != OUTCOME_COMMITTED)
		return ERR_OK;
	enum err e = write_model(r, w, why);
	if (!e)
		e = write_difference(r, w, why);
	return e ? e : write_state(r, w, why);
}

enum err
round_files_show(struct round_files *r, const struct fold *w, struct why *why)
{
	r->kept = r->shown = r->model;
	return r->model ? models_file_keep(r->model, MODELS_KIND_MODEL, w->out.row.model, why)
			: ERR_OK;
}

enum err
round_files_keep(struct round_files *r, const struct fold *w, struct why *why)
{
	const struct store_round *row = &w->out.row;
	enum err e = ERR_OK;

	r->kept = r->model;
	if (r->model && !r->shown)
		e = models_file_keep(r->model, MODELS_KIND_MODEL, row->model, why);
	if (!e && r->difference)
		e = models_file_keep(r->difference, MODELS_KIND_DIFFERENCE, row->model, why);
	if (!e && r->state)
		e = models_file_keep(r->state, MODELS_KIND_STATE, row->optimizer_state, why);
	return e;
}

void
round_files_drop(struct round_files *r)
{
	models_file_drop(r->model);
	models_file_drop(r->difference);
	models_file_drop(r->state);
	*r = (struct round_files){.kept = r->kept};
}
