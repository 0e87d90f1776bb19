#include "footprint.h"

#include "codec.h"
#include "trainer.h"
#include "vectors.h"

/* Of an agent with its connections and libraries, measured where it waits. */
#define PROCESS_BYTES ((uint64_t)3500 << 10)

static uint64_t
larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t
plan_footprint_examples(const struct dataset *d, const struct job_spec *job)
{
	uint64_t value = d->bytes ? 1 : d->floats ? sizeof(float) : 0;
	uint64_t one = d->features * value + (d->row ? sizeof(*d->row) : 0) +
	    (d->labels ? sizeof(*d->labels) : 0) +
	    (d->targets ? d->target_width * sizeof(float) : 0);
	uint64_t held = d->count * one;

	/* The parts are lists of rows, or copies of what lies in memory. */
	return job->recipe.data.validation > 0 ? 2 * held : held;
}

/* What lies there at the worst moment of finish_submit, in vectors as long as the delta: before and after, and the base as it stands in
 * the file; then what is sent, and what its codec lost. */
static uint64_t
delta_bytes(const struct job_spec *job, const struct tensor_table *table)
{
	const struct recipe *r = &job->recipe;
	const struct codec *codec = codec_find_name(r->codec);
	uint64_t vector = table->elements * sizeof(float);
	bool variates = r->local.variates > 0;
	uint64_t payload = vectors_times(recipe_upload_most(&r->upload, table->elements), variates);
	uint64_t feedback = codec && recipe_upload_feedback(&r->upload, codec) ? vector : 0;
	uint64_t held = variates ? 2 * vector : 0; /* the server's variate and the device's */

	return held +
	    larger(
		2 * vector + table->bytes, vector + payload + feedback + (variates ? vector : 0));
}

enum err
plan_footprint(struct plan_footprint *out, const struct job_spec *job,
    const struct tensor_table *table, const struct settings *settings, const struct dataset *train,
    uint64_t examples_bytes, struct why *why)
{
	const struct recipe *r = &job->recipe;
	const struct trainer *trainer = trainer_find(settings, r);
	enum err e = ERR_OK;

	*out = (struct plan_footprint){.process = PROCESS_BYTES,
	    .examples = examples_bytes,
	    .weights = table->bytes,
	    .delta = delta_bytes(job, table),
	    .program = !trainer || trainer->run != trainer_builtin_run};
	if (!out->program)
		e = trainer_builtin_bytes(settings, r, train,
		    r->data.validation > 0 ? train->count : 0, &out->training, why);
	if (!e && !out->program && r->local.variates > 0)
		out->training += 3 * table->elements * sizeof(float);
	out->peak = out->process + out->examples + out->weights + larger(out->training, out->delta);
	return e;
}
