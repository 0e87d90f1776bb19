#include "footprint.h"

#include <string.h>

#include "codec.h"
#include "manifest.h"
#include "modelfile.h"
#include "trainer.h"
#include "vectors.h"

/* Of an agent with its connections and libraries, measured where it waits. */
#define PROCESS_BYTES ((uint64_t)3000 << 10)

enum err
plan_footprint_bytes(struct plan_bytes *out, const struct recipe *recipe,
    const struct tensor_table *table, struct why *why)
{
	const struct codec *codec = codec_find_name(recipe->codec);
	struct modelfile_meta meta = {.round = 1};
	struct buf head;

	if (!codec)
		return err_set(why, ERR_UNSUPPORTED, "the codec %s of upload is not in this build",
		    recipe->codec);
	memset(meta.job, '0', sizeof(meta.job) - 1);
	memset(meta.base, '0', sizeof(meta.base) - 1);
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	enum err e = modelfile_header(&head, table, &meta);
	out->model = head.len + table->bytes;
	out->delta = manifest_body_bytes(
	    vectors_times(recipe_upload_bytes(&recipe->upload, codec, table->elements),
		recipe->local.variates > 0));
	buf_deinit(&head);
	return e ? err_set(why, e, "no memory for a model's head") : ERR_OK;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t
plan_footprint_examples(const struct dataset *d, const struct recipe *recipe)
{
	uint64_t value = d->bytes ? 1 : d->floats ? sizeof(float) : 0;
	uint64_t one = d->features * value + (d->row ? sizeof(*d->row) : 0) +
	    (d->labels ? sizeof(*d->labels) : 0) +
	    (d->targets ? d->target_width * sizeof(float) : 0);
	uint64_t held = d->count * one;

	/* The parts are lists of rows, or copies of what lies in memory. */
	return recipe->data.validation > 0 ? 2 * held : held;
}

/* What lies there at the worst moment of finish_submit, in vectors as long as the delta: before and after, and the base as it stands in
 * the file; then what is sent, and what its codec lost. */
static uint64_t
delta_bytes(const struct recipe *recipe, const struct tensor_table *table)
{
	const struct codec *codec = codec_find_name(recipe->codec);
	uint64_t vector = table->elements * sizeof(float);
	bool variates = recipe->local.variates > 0;
	uint64_t payload =
	    vectors_times(recipe_upload_most(&recipe->upload, table->elements), variates);
	uint64_t feedback = codec && recipe_upload_feedback(&recipe->upload, codec) ? vector : 0;
	uint64_t held = variates ? 2 * vector : 0; /* the server's variate and the device's */

	return held +
	    larger(
		2 * vector + table->bytes, vector + payload + feedback + (variates ? vector : 0));
}

enum err
plan_footprint(struct plan_footprint *out, const struct recipe *recipe,
    const struct tensor_table *table, const struct settings *settings, const struct dataset *train,
    uint64_t examples_bytes, struct why *why)
{
	const struct trainer *trainer = trainer_find(settings, recipe);
	enum err e = ERR_OK;

	*out = (struct plan_footprint){.process = PROCESS_BYTES,
	    .examples = examples_bytes,
	    .weights = table->bytes,
	    .delta = delta_bytes(recipe, table),
	    .program = !trainer || trainer->run != trainer_builtin_run};
	if (!out->program)
		e = trainer_builtin_bytes(settings, recipe, train,
		    recipe->data.validation > 0 ? train->count : 0, &out->training, why);
	if (!e && !out->program && recipe->local.variates > 0)
		out->training += 3 * table->elements * sizeof(float);
	out->peak = out->process + out->examples + out->weights + larger(out->training, out->delta);
	return e;
}
