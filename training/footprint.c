#include "footprint.h"

#include <string.h>

#include "buf.h"
#include "codec.h"
#include "dataset.h"
#include "manifest.h"
#include "modelfile.h"
#include "planned.h"
#include "training.h"
#include "vectors.h"

/* Of an agent with its connections and libraries, measured where it waits. */
#define PROCESS_BYTES ((uint64_t)3000 << 10)
#define TILES_BYTES ((uint64_t)400 << 10)

enum err
footprint_bytes(struct footprint_bytes *out, const struct recipe *recipe,
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
footprint_examples(const struct dataset *d, const struct recipe *recipe)
{
	uint64_t value = d->bytes ? 1 : d->floats ? sizeof(float) : 0;
	uint64_t one = d->features * value + (d->row ? sizeof(*d->row) : 0) +
	    (d->labels ? sizeof(*d->labels) : 0) +
	    (d->targets ? d->target_width * sizeof(float) : 0);
	/* A text with a vocabulary of its own lies in memory as numbers. */
	uint64_t text = d->rows && d->rows->heap && d->rows->tokens
	    ? d->rows->items * dataset_type_size(d->rows->type)
	    : 0;
	uint64_t held = d->count * one + text;

	/* The parts are lists of rows, or copies of what lies in memory. */
	return recipe->data.validation > 0 ? 2 * held : held;
}

/* What lies there at the worst moment of finish_submit: a chunk and tiles, hashes of the chunks, the table of a sparse payload. */
static uint64_t
delta_bytes(const struct recipe *recipe, const struct tensor_table *table)
{
	const struct codec *codec = codec_find_name(recipe->codec);
	uint64_t payload = vectors_times(
	    recipe_upload_most(&recipe->upload, table->elements), recipe->local.variates > 0);

	return (payload < MANIFEST_CHUNK ? payload : MANIFEST_CHUNK) + TILES_BYTES +
	    manifest_body_bytes(payload) - payload +
	    (codec ? codec_table_bytes(codec, table->elements) : 0);
}

static struct planned_task
plan_of(const struct footprint_want *want, unsigned threads)
{
	return (struct planned_task){.recipe = want->recipe,
	    .kind = want->kind,
	    .train = want->train,
	    .validation = want->validation,
	    .threads = threads};
}

enum err
footprint_network(
    struct net **out, const struct footprint_want *want, unsigned threads, struct why *why)
{
	const struct planned_task plan = plan_of(want, threads);

	return planned_net(out, &plan, NULL, why);
}

/* Beside the rest, with so many threads. */
static enum err
count_training(
    struct footprint *out, const struct footprint_want *want, unsigned threads, struct why *why)
{
	const struct planned_task plan = plan_of(want, threads);
	struct net *net = NULL;
	enum err e = planned_net(&net, &plan, &out->data, why);

	if (e)
		return e;
	costs_all(net, &out->costs);
	out->threads = threads;
	out->training = net_bytes(net) + out->data;
	const struct tensor_table *table = want->table ? want->table : net_tensors(net);
	uint64_t own = net_tensors(net)->bytes;
	/* A model may have more than its network. */
	bool larger_file = !want->table && want->model_bytes > own + MODELFILE_HEADER_MAX;
	out->weights = larger_file ? want->model_bytes : table->bytes;
	if (want->kind == TASK_TRAIN) {
		out->delta = delta_bytes(want->recipe, table);
		if (want->recipe->local.variates > 0)
			out->variates = table->elements * sizeof(float);
	}
	if (want->kind != TASK_TRAIN || out->weights != own)
		out->training += out->weights;
	out->training += out->variates;
	net_free(net);
	return ERR_OK;
}

static void
add_up(struct footprint *f)
{
	uint64_t handing = f->weights + larger(f->weights + f->variates, f->delta);

	f->peak = f->process + f->examples + larger(f->training, handing);
}

enum err
footprint_of(struct footprint *out, const struct footprint_want *want, struct why *why)
{
	unsigned threads = planned_threads(want->threads);

	*out = (struct footprint){
	    .process = PROCESS_BYTES, .examples = want->examples_bytes, .program = want->program};
	if (out->program) {
		out->delta = delta_bytes(want->recipe, want->table);
		add_up(out);
		return ERR_OK;
	}
	for (;; threads /= 2) {
		enum err e = count_training(out, want, threads, why);
		add_up(out);
		if (e || threads == 1 || want->most == 0 || out->peak <= want->most)
			return e;
	}
}

/* Whether pieces of so many examples fit. */
static enum err
try_piece(uint64_t piece, const struct footprint_want *want, uint64_t *peak, struct why *why)
{
	struct recipe recipe = *want->recipe;
	struct footprint_want smaller = *want;
	struct footprint f;

	recipe.local.micro_batch = (uint32_t)piece;
	*peak = UINT64_MAX;
	smaller.recipe = &recipe;
	enum err e = footprint_of(&f, &smaller, why);
	if (!e)
		*peak = f.peak;
	return e == ERR_LIMIT ? ERR_OK : e;
}

/* Rather smaller pieces than such as leave one example of each step out. */
static enum err
avoid_singles(struct footprint_proposal *out, const struct footprint_want *want, struct why *why)
{
	const struct local_spec *local = &want->recipe->local;
	uint64_t step = training_step(local, want->train->count);
	enum err e = ERR_OK;

	while (!e && out->micro_batch > local->least && step % out->micro_batch < local->least &&
	    step % out->micro_batch > 0)
		e = try_piece(--out->micro_batch, want, &out->peak, why);
	return e;
}

enum err
footprint_propose(
    struct footprint_proposal *out, const struct footprint_want *want, struct why *why)
{
	uint64_t least = want->recipe->local.least > 1 ? want->recipe->local.least : 1;
	uint64_t batch = want->recipe->local.batch, whole = 0, one = 0, peak = 0;

	if (batch == 0 || batch > want->train->count)
		batch = want->train->count;
	/* The whole batch is no piece, and takes no vector to collect gradients in. */
	enum err e = try_piece(batch, want, &whole, why);
	if (!e)
		e = try_piece(least, want, &one, why);
	*out = (struct footprint_proposal){.peak = whole < one ? whole : one};
	if (whole <= want->most)
		*out = (struct footprint_proposal){batch, whole};
	else if (one <= want->most)
		*out = (struct footprint_proposal){least, one};
	/* Pieces below `high` may fit: what a piece takes grows with it. */
	for (uint64_t high = batch; !e && out->micro_batch > 0 && high - out->micro_batch > 1;) {
		uint64_t middle = out->micro_batch + (high - out->micro_batch) / 2;
		e = try_piece(middle, want, &peak, why);
		if (peak <= want->most)
			*out = (struct footprint_proposal){middle, peak};
		else
			high = middle;
	}
	return e ? e : avoid_singles(out, want, why);
}
