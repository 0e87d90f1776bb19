#include "course_rows.h"

#include <string.h>

void
course_rows_step(struct course *c, const struct job_spec *spec, const struct store_round *row,
    struct course_turn *out)
{
	const struct course_round r = {.round = row->round,
	    .reports = row->reports,
	    .failed = strcmp(row->state, "failed") == 0,
	    .base = row->base,
	    .model = row->model,
	    .state = row->optimizer_state,
	    .evaluated = row->evaluate.known,
	    .loss = row->evaluate.loss,
	    .accuracy = row->evaluate.accuracy};

	course_step(c, spec, &r, out);
}

struct replay {
	const struct job_spec *spec;
	struct course *course;
};

static enum err
replay_round(void *ctx, const struct store_round *row)
{
	struct replay *r = ctx;
	struct course_turn turn;

	if (strcmp(row->state, "open") != 0)
		course_rows_step(r->course, r->spec, row, &turn);
	return ERR_OK;
}

enum err
course_rows_load(
    struct store_db *db, const struct job_spec *spec, const uint8_t job[16], struct course *out)
{
	struct replay r = {.spec = spec, .course = out};

	*out = course_start();
	return course_matters(spec) ? store_round_each(db, job, 1, UINT64_MAX, replay_round, &r)
				    : ERR_OK;
}

enum err
course_rows_of(struct store_db *db, const struct store_job *row, struct course *out)
{
	struct job_spec spec;

	*out = course_start();
	if (job_parse(&spec, row->document, row->document_len, NULL) != ERR_OK)
		return ERR_OK;
	enum err e = course_rows_load(db, &spec, row->id, out);
	job_deinit(&spec);
	return e;
}
