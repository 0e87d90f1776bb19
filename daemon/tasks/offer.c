#include <string.h>

#include "allowance.h"
#include "hex.h"
#include "tasks_inside.h"
#include "vectors.h"

bool
tasks_offer_names(const message_name *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

/* What the device has of the job's data; 0 if the job names none. */
static uint64_t
examples_of(const struct recipe *r, const struct offer *o)
{
	for (size_t i = 0; i < o->data_count; i++)
		if (r->data.name[0] && strcmp(o->data[i].name, r->data.name) == 0)
			return allowance_examples(&r->data, o->data[i].examples, o->data[i].tokens);
	return 0;
}

static bool
draws(const struct offer *o)
{
	return tasks_offer_names(o->features, o->feature_count, RECIPE_FEATURE_MAX_EXAMPLES);
}

/* Would it claim more than the job allows, in tasks of that kind? How a text is cut is known on the device alone. */
static bool
claims_too_much(const struct job *j, const struct offer *o, enum task_kind kind)
{
	const struct recipe *r = &job_facts(j)->work->spec.recipe;

	return !draws(o) && r->data.window == 0 &&
	    allowance_cuts(r, kind == TASK_EVALUATE, examples_of(r, o),
		job_facts(j)->work->spec.aggregate.max_examples);
}

/* Older agents do not say. */
static bool
lacks_figures(const struct recipe *r, const struct offer *o)
{
	return r->evaluate_by == EVALUATE_DEVICES && figure_set_any(&r->figures) &&
	    o->says_figures && !messages_offer_gives_figures(o, r->trainer);
}

enum wait_reason
tasks_offer_lacks(const struct job *j, const struct offer *o, enum task_kind kind)
{
	const struct recipe *r = &job_facts(j)->work->spec.recipe;

	if (r->data.name[0] && examples_of(r, o) < recipe_min_examples(r, kind == TASK_EVALUATE))
		return WAIT_NO_DATA;
	if (kind == TASK_EVALUATE &&
	    !tasks_offer_names(o->features, o->feature_count, RECIPE_FEATURE_EVALUATE))
		return WAIT_OLD_AGENT;
	if (kind == TASK_EVALUATE
		? !tasks_offer_names(o->evaluators, o->evaluator_count, r->trainer)
		: !tasks_offer_names(o->trainers, o->trainer_count, r->trainer))
		return WAIT_NO_TRAINER;
	const char *codec = recipe_upload_choose(&r->upload, o->codecs, o->codec_count);
	if (!codec)
		return WAIT_NO_CODEC;
	if (recipe_feature_missing(r, codec_find_name(codec), o->features, o->feature_count) ||
	    (job_facts(j)->work->spec.round.mode == ROUND_MODE_BUFFERED &&
		!tasks_offer_names(o->features, o->feature_count, RECIPE_FEATURE_BUFFERED)))
		return WAIT_OLD_AGENT;
	if (lacks_figures(r, o))
		return WAIT_NO_FIGURES;
	if (claims_too_much(j, o, kind))
		return WAIT_TOO_MANY_EXAMPLES;
	if (!r->builtin)
		return WAIT_NONE;
	for (size_t l = 0; l < r->net.layer_count; l++) {
		const char *type = net_spec_type_name(r->net.layers[l].type);
		if (!tasks_offer_names(o->layers, o->layer_count, type))
			return WAIT_OLD_AGENT;
	}
	return WAIT_NONE;
}

enum wait_reason
tasks_offer_unready(const struct offer *o)
{
	enum wait_reason r = wait_reason_find(o->unready);

	return !r || wait_reason_is_owners(r) ? r : WAIT_CHECK;
}

bool
tasks_offer_rests(const struct offer *o, const struct job *j)
{
	for (size_t i = 0; i < o->resting_count; i++)
		if (o->resting[i].seconds > 0 &&
		    memcmp(o->resting[i].job, job_facts(j)->id, sizeof(job_facts(j)->id)) == 0)
			return true;
	return false;
}

bool
tasks_offer_unsent(const struct offer *o, const char *task)
{
	for (size_t i = 0; i < o->unsent_count; i++)
		if (strcmp(o->unsent[i], task) == 0)
			return true;
	return false;
}

enum problem_type
tasks_claim_examples(const struct job *j, const struct manifest *m, struct why *why)
{
	if (m->examples == 0) {
		err_set(why, ERR_INVALID, "examples is 0");
		return PROBLEM_NO_EXAMPLES;
	}
	if (m->examples > job_facts(j)->work->spec.aggregate.max_examples) {
		err_set(why, ERR_LIMIT, "%llu examples; the job allows %llu",
		    (unsigned long long)m->examples,
		    (unsigned long long)job_facts(j)->work->spec.aggregate.max_examples);
		return PROBLEM_TOO_MANY_EXAMPLES;
	}
	return PROBLEM_NONE;
}

static bool
is_sized(const struct job *j)
{
	return job_facts(j)->work->spec.recipe.local.unit == LOCAL_SIZED && !job_evaluates(j);
}

static uint64_t
size_oldest(const struct job *j)
{
	const struct job_facts *facts = job_facts(j);
	uint64_t stale = facts->work->spec.round.max_staleness;

	return facts->row.round > stale ? facts->row.round - stale : 1;
}

/* A task that nobody here knows was handed out by a coordinator whose last rows a restored backup has not. */
static enum problem_type
claim_steps(const struct job *j, const struct manifest *m, struct why *why)
{
	if (!is_sized(j))
		return PROBLEM_NONE;
	const struct speeds_task *task =
	    speeds_find(&job_facts(j)->work->speeds, m->device, m->round);
	uint64_t most = task ? task->steps : job_facts(j)->work->spec.recipe.local.max_steps;
	if (m->steps <= most)
		return PROBLEM_NONE;
	err_set(why, ERR_LIMIT, "%llu steps; the task gave %llu", (unsigned long long)m->steps,
	    (unsigned long long)most);
	return PROBLEM_TOO_MANY_STEPS;
}

/* What a manifest says of the work that is in the delta. */
static enum problem_type
claim_work(const struct job *j, const struct manifest *m, struct why *why)
{
	enum problem_type problem = tasks_claim_examples(j, m, why);

	if (!problem)
		problem = claim_steps(j, m, why);
	if (problem)
		return problem;
	if (job_facts(j)->work->spec.aggregate.normalise &&
	    (!(m->normaliser > 0) || m->optimizer == MANIFEST_ADAM ||
		m->optimizer == MANIFEST_ADAMW)) {
		err_set(why, ERR_INVALID, "normaliser %g of optimizer %u; the job normalises",
		    (double)m->normaliser, m->optimizer);
		return PROBLEM_NO_NORMALISER;
	}
	return PROBLEM_NONE;
}

enum problem_type
tasks_claim_format(const struct job *j, const struct manifest *m, struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	const struct vectors v = vectors_of(m);
	const struct codec *codec = v.codec;

	if ((m->flags & (MANIFEST_MASKED | MANIFEST_KIND_MASK)) || m->slice != 0 ||
	    v.second != (facts->work->spec.aggregate.variates > 0)) {
		err_set(why, ERR_UNSUPPORTED, "flags 0x%x, slice %u", m->flags, m->slice);
		return PROBLEM_UNSUPPORTED;
	}
	if (!codec || !recipe_upload_takes(&facts->work->spec.recipe.upload, codec->name)) {
		err_set(why, ERR_UNSUPPORTED, "codec %u; the job takes %s%s", m->codec,
		    facts->work->spec.recipe.codec,
		    facts->work->spec.recipe.upload.codec_count > 1 ? " and others" : "");
		return PROBLEM_UNKNOWN_CODEC;
	}
	if (m->elements != facts->work->table.elements || m->block != codec->block) {
		err_set(why, ERR_INVALID, "%llu elements in blocks of %u; the model has %llu",
		    (unsigned long long)m->elements, m->block,
		    (unsigned long long)facts->work->table.elements);
		return PROBLEM_BAD_MANIFEST;
	}
	uint64_t need = vectors_times(
	    recipe_upload_bytes(&facts->work->spec.recipe.upload, codec, m->elements), v.second);
	if (codec->fixed_size ? m->payload_bytes != need : m->payload_bytes > need) {
		err_set(why, ERR_INVALID, "payload of %llu bytes; the codec needs %llu",
		    (unsigned long long)m->payload_bytes, (unsigned long long)need);
		return PROBLEM_WRONG_LENGTH;
	}
	return claim_work(j, m, why);
}

/* --- work by measured speed */

enum err
tasks_size(struct job *j, const uint8_t device[32], uint64_t *steps)
{
	*steps = 0;
	if (!is_sized(j))
		return ERR_OK;
	const struct speeds_task *task =
	    speeds_size(job_speeds(j), &job_facts(j)->work->spec.recipe.local, device,
		job_facts(j)->row.round, size_oldest(j));
	if (!task)
		return ERR_NOMEM;
	*steps = task->steps;
	return ERR_OK;
}

void
tasks_size_note(struct job *j, const struct engine_claim *claim)
{
	if (job_facts(j)->work && is_sized(j) && claim->speed.seconds > 0)
		speeds_note(job_speeds(j), claim->device, claim->speed.steps, claim->speed.seconds);
}

/* --- the differences that a task may name */

static bool
holds(const struct offer *o, const char *id)
{
	for (size_t i = 0; i < o->held_count; i++)
		if (strcmp(o->held_models[i], id) == 0)
			return true;
	return false;
}

void
tasks_offer_difference(const struct job *j, const struct offer *o, struct task *out)
{
	const struct job_facts *facts = job_facts(j);
	uint64_t bytes = 0;
	char from[65];
	size_t i = 0;

	if (facts->work->differences.count == 0 || holds(o, out->model) ||
	    !tasks_offer_names(o->codecs, o->codec_count, facts->work->spec.download.codec))
		return;
	while (i < facts->work->differences.count &&
	    memcmp(facts->work->differences.items[i].to, facts->row.base, 32) != 0)
		i++;
	for (; i < facts->work->differences.count; i++) {
		bytes += facts->work->differences.items[i].bytes;
		if (bytes >= facts->model_bytes)
			return;
		hex_encode(from, facts->work->differences.items[i].from, 32);
		if (!holds(o, from))
			continue;
		memcpy(out->from, from, sizeof(from));
		out->from_bytes = bytes;
		return;
	}
}

bool
tasks_size_missing(
    struct engine *g, const uint8_t device[32], const struct task *task, struct store_sized *out)
{
	*out = (struct store_sized){.round = task->round, .steps = task->steps};
	if (task->wait || task->steps == 0 ||
	    !hex_decode(out->job, sizeof(out->job), task->job, strlen(task->job)))
		return false;
	memcpy(out->device, device, sizeof(out->device));
	jobs_lock(g);
	const struct job *j = jobs_find(g, out->job);
	const struct speeds_task *sized = j && job_facts(j)->work
	    ? speeds_find(&job_facts(j)->work->speeds, device, task->round)
	    : NULL;
	/* Of a job that ended meanwhile nobody waits for the task. */
	bool missing = sized && !sized->stored;
	if (missing)
		out->oldest = size_oldest(j);
	jobs_unlock(g);
	return missing;
}

void
tasks_size_stored(struct engine *g, const struct store_sized *row)
{
	jobs_lock(g);
	struct job *j = jobs_find(g, row->job);
	if (j && job_facts(j)->work)
		speeds_stored(job_speeds(j), row->device, row->round);
	jobs_unlock(g);
}
