#include "rivulet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allowance.h"
#include "ask.h"
#include "counts.h"
#include "device.h"
#include "finish.h"
#include "handle_inside.h"
#include "hex.h"
#include "home.h"
#include "identity_set.h"
#include "local.h"
#include "next.h"
#include "program_state.h"
#include "scaffold.h"
#include "shard.h"
#include "training.h"
#include "version.h"

#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

#define AT(type, member) offsetof(struct rivulet_##type, member)

static void
deliver_event(void *context, int level, const char *line)
{
	struct rivulet *r = context;

	r->event(r->context, level, line);
}

/* Two agents in one home would train the same task twice and step on each other's files. What a crash left half done to
 * the identity is finished before it is read. */
static enum err
take_home(struct rivulet *r, struct why *why)
{
	struct identity id;
	enum err e = identity_load(&id, r->home, why);

	if (!e)
		e = home_lock(&r->lock, r->home, why);
	return e ? e : identity_set_apply(r->home, why);
}

static enum err
open_session(struct rivulet *r, struct why *why)
{
	const struct session_options options = {.home = r->home,
	    .urls = (const char(*)[ADDRESS_MAX])r->settings->urls,
	    .url_count = r->settings->url_count,
	    .cancel = handle_cancelled,
	    .context = r,
	    .events = &r->events,
	    .locked = true};
	const struct transport_options mirror = {.cancel = handle_cancelled, .context = r};
	enum err e = session_open(&r->session, &options, why);

	if (!e && *r->settings->mirror)
		e = transport_new(&r->mirror, &mirror, why);
	return e;
}

static void
tell_warnings(const struct rivulet *r)
{
	const struct ini_warnings *w = &r->settings->warnings;

	for (size_t i = 0; i < w->count; i++)
		events_emit(&r->events, EVENTS_WARN, "settings.warning",
		    EVENTS_PAIRS(EVENTS_S("why", w->text[i].text)));
}

static enum err
open_all(struct rivulet *r, const struct rivulet_options *options, struct events_log *log,
    struct why *why)
{
	enum err e = identity_home(r->home, options->home, why);

	if (!e)
		e = settings_load(&r->settings, r->home, options->config, why);
	if (!e && log)
		log->format = r->settings->log_format;
	if (!e)
		e = take_home(r, why);
	if (!e)
		e = eligibility_new(&r->eligibility, r->settings, r->home, why);
	if (!e)
		e = open_session(r, why);
	if (!e)
		e = cache_init(&r->cache, r->home, "models", r->settings->cache_bytes, why);
	if (!e)
		e = outbox_init(&r->outbox, r->home, r->settings->outbox_bytes, why);
	if (!e)
		e = residual_init(
		    &r->residual, r->home, r->settings->residual_bytes, &r->outbox, why);
	if (!e)
		e = scaffold_init(r->home, why);
	if (!e)
		e = local_init(r->home, why);
	if (!e)
		e = program_state_init(r->home, &r->outbox, why);
	if (!e)
		e = ask_offer(r, options, why);
	if (e)
		return e;
	tell_warnings(r);
	home_note(r->home, "started", "and asking for work");
	backoff_init(&r->idle, prng_u64(&session_backoff(r->session)->rng));
	job_backoff_init(&r->job_backoff, prng_u64(&session_backoff(r->session)->rng));
	backoff_init(&r->rotate, prng_u64(&session_backoff(r->session)->rng));
	backoff_init(&r->resend, prng_u64(&session_backoff(r->session)->rng));
	return ERR_OK;
}

int
device_open(struct rivulet **out, const struct rivulet_options *options, struct events_log *log,
    struct why *why)
{
	struct rivulet *r = calloc(1, sizeof(*r));
	enum err e = ERR_NOMEM;

	*out = NULL;
	if (r) {
		r->lock = -1;
		r->cancel = options->cancel;
		r->context = options->context;
		r->event = options->event;
		r->events = log
		    ? log->events
		    : (struct events){.sink = r->event ? deliver_event : NULL, .context = r};
		e = open_all(r, options, log, why);
	}
	if (e) {
		if (!*why->text)
			err_set(why, e, "%s", err_name(e));
		rivulet_close(r);
		return handle_error(e);
	}
	*out = r;
	return RIVULET_OK;
}

int
rivulet_open(
    struct rivulet **out, const struct rivulet_options *options, char *why, size_t why_size)
{
	struct why reason = {""};
	int rc = device_open(out, options, NULL, &reason);

	if (rc != RIVULET_OK && why && why_size)
		snprintf(why, why_size, "%s", reason.text);
	return rc;
}

void
rivulet_close(struct rivulet *r)
{
	if (!r)
		return;
	handle_drop(r);
	if (r->offer)
		messages_offer_deinit(r->offer);
	free(r->offer);
	session_free(r->session);
	transport_free(r->mirror);
	eligibility_free(r->eligibility);
	settings_free(r->settings);
	home_unlock(r->lock);
	free(r);
}

int
rivulet_next(struct rivulet *r, double timeout_s, const struct rivulet_task **task)
{
	int rc = next_task(r, timeout_s);

	*task = rc == RIVULET_OK ? &r->task : NULL;
	return rc;
}

/* An evaluation that found a number has them, where the job asks for some. */
static enum err
put_counts(struct rivulet *r, struct report *report)
{
	const struct recipe *recipe = &r->work.task.recipe;
	bool seen =
	    report->has_evaluate && !(isnan(report->eval_loss) && isnan(report->eval_accuracy));

	if (!seen || !figure_set_any(&recipe->figures))
		return ERR_OK;
	if (!r->counts)
		return err_set(&r->why, ERR_INVALID,
		    "the job asks for evaluate.figures: rivulet_figures gives them");
	const struct report_counted *counted = &r->counted[TASK_EVALUATE];
	const struct counts_said said = {
	    report->eval_examples, counted->has_labels, counted->labels};
	report->counts = r->counts;
	return counts_check(r->counts, &said, &r->why);
}

int
rivulet_figures(struct rivulet *r, const char *evaluate)
{
	const struct recipe *recipe = &r->work.task.recipe;
	struct counts *counts = NULL;
	struct buf text;

	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	buf_init(&text, REPORT_MAX);
	enum err e = buf_printf(&text, "{\"evaluate\":%s}", evaluate);
	if (e)
		err_set(&r->why, e, "the counts are longer than a report's %d bytes", REPORT_MAX);
	else
		e = messages_report_counts(&counts, &recipe->figures, recipe->data.class_count,
		    buf_str(&text), text.len, &r->why);
	buf_deinit(&text);
	if (!e && !counts && figure_set_any(&recipe->figures))
		e = err_set(&r->why, ERR_INVALID, "evaluate has neither accuracy nor loss");
	if (e)
		return handle_error(e);
	counts_free(r->counts);
	r->counts = counts;
	return RIVULET_OK;
}

int
rivulet_count(struct rivulet *r, int kind, double loss_count, uint64_t labels, uint64_t right)
{
	bool has = labels != RIVULET_UNCOUNTED;
	struct report_counted c = {true, loss_count, has, has ? labels : 0, has ? right : 0};
	const bool told = loss_count != RIVULET_UNTOLD;

	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	if (kind != RIVULET_TRAIN && kind != RIVULET_EVALUATE)
		return handle_error(err_set(&r->why, ERR_INVALID, "no figures of kind %d", kind));
	enum err e = told ? finish_check_counted(&c, &r->why) : ERR_OK;
	if (!e)
		r->counted[kind] = told ? c : (struct report_counted){.told = false};
	return handle_error(e);
}

int
rivulet_submit(struct rivulet *r, const struct rivulet_result *result)
{
	struct report report;
	struct finish f;
	enum err e = finish_of(&f, &report, result, &r->why);

	bool evaluates = r->has_work && r->work.task.kind == TASK_EVALUATE;

	if (!e && r->has_work)
		e = put_counts(r, &report);
	if (!e)
		finish_count(&f, &report, r->counted);
	if (evaluates)
		f.examples = result->evaluate.examples;
	else if (!e && r->has_work && work_variates(&r->work))
		e = err_set(&r->why, ERR_INVALID,
		    "a job with control variates needs a trainer that the agent starts");
	return e ? handle_error(e) : finish_submit(r, &f);
}

int
rivulet_stop_now(struct rivulet *r)
{
	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	if (r->cancel && r->cancel(r->context) != 0)
		return RIVULET_STOPPED;
	return backoff_now() < r->stop_at && !handle_verdict(r)->training ? RIVULET_OK
									  : RIVULET_TIMEOUT;
}

int
rivulet_validation(struct rivulet *r, uint64_t examples, uint32_t *indices, size_t *count)
{
	uint32_t *order = NULL;
	size_t held = 0, room = indices ? *count : 0;

	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	const struct task *t = &r->work.task;
	/* Round 0 stands for "in every round": the validation share of a job never changes. */
	enum err e = examples > UINT32_MAX
	    ? ERR_LIMIT
	    : shard_hold(&order, &held, (size_t)examples, t->recipe.data.validation,
		  training_seed(t->seed, 0, session_device(r->session)));
	if (e)
		return handle_error(err_set(
		    &r->why, e, "%llu examples are too many", (unsigned long long)examples));
	*count = held;
	if (held > 0 && held <= room)
		memcpy(indices, order, held * sizeof(*indices));
	free(order);
	if (held <= room)
		return RIVULET_OK;
	return handle_error(err_set(&r->why, ERR_LIMIT, "there are %zu indices", held));
}

int
rivulet_share(struct rivulet *r, uint64_t examples, int kind, uint32_t *indices, size_t *count)
{
	size_t room = indices ? *count : 0, found = 0;
	uint32_t *list = NULL;

	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	const struct task *t = &r->work.task;
	const struct allowance_want want = {.recipe = &t->recipe,
	    .evaluates = t->kind == TASK_EVALUATE,
	    .examples = examples,
	    .most = t->max_examples,
	    .job_seed = t->seed,
	    .round = t->round,
	    .device = session_device(r->session)};
	const struct allowance a = allowance_count(&want);
	enum err e = ERR_OK;

	if (room == 0)
		found = (size_t)(kind == RIVULET_TRAIN ? a.train : a.validation);
	else
		e = allowance_draw(&list, &found, &want, kind == RIVULET_TRAIN);
	if (e)
		return handle_error(err_set(
		    &r->why, e, "%llu examples are too many", (unsigned long long)examples));
	*count = found;
	if (found > 0 && found <= room)
		memcpy(indices, list, found * sizeof(*indices));
	free(list);
	if (found <= room)
		return RIVULET_OK;
	return handle_error(err_set(&r->why, ERR_LIMIT, "there are %zu indices", found));
}

int
rivulet_can(struct rivulet *r, const char *feature)
{
	struct offer *o = r->offer;

	if (strcmp(feature, RECIPE_FEATURE_FIGURES) == 0) {
		for (size_t i = 0; i < o->trainer_count; i++)
			messages_offer_set_figures(o, o->trainers[i], true);
		for (size_t i = 0; i < o->evaluator_count; i++)
			messages_offer_set_figures(o, o->evaluators[i], true);
		return RIVULET_OK;
	}
	if (strcmp(feature, RECIPE_FEATURE_MAX_EXAMPLES) != 0)
		return handle_error(err_set(
		    &r->why, ERR_INVALID, "no feature \"%.40s\" for a program to have", feature));
	for (size_t i = 0; i < o->feature_count; i++)
		if (strcmp(o->features[i], feature) == 0)
			return RIVULET_OK;
	if (o->feature_count == MESSAGES_LIST_MAX)
		return handle_error(err_set(&r->why, ERR_LIMIT, "the offer has no room"));
	strcpy(o->features[o->feature_count++], feature);
	return RIVULET_OK;
}

void *
rivulet_hold(struct rivulet *r)
{
	if (!r->has_work || r->weights_held)
		return NULL;
	r->weights_held = true;
	return r->work.weights;
}

void
rivulet_release(void *held)
{
	free(held);
}

/* --- what the program keeps of its own */

static enum err
read_memory(const void *context, void *out, size_t len, uint64_t at)
{
	memcpy(out, (const char *)context + at, len);
	return ERR_OK;
}

int
rivulet_keep(struct rivulet *r, const void *data, size_t size)
{
	const struct program_state_source source = {read_memory, data, size};

	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	return handle_error(
	    program_state_keep(&r->work, r->home, r->settings->kept_bytes, &source, &r->why));
}

/* Into memory of the handle's. */
static enum err
read_kept(struct rivulet *r, const struct kept *k)
{
	free(r->kept);
	r->kept = k->file.count < SIZE_MAX ? malloc((size_t)k->file.count + 1) : NULL;
	if (!r->kept)
		return err_set(&r->why, ERR_NOMEM, "no memory for %llu bytes that were kept",
		    (unsigned long long)k->file.count);
	hex_encode(r->kept_model, k->file.base, sizeof(k->file.base));
	enum err e = kept_read(k, r->kept, (size_t)k->file.count, 0);
	return e ? err_set(&r->why, e, "what was kept cannot be read") : ERR_OK;
}

int
rivulet_kept(
    struct rivulet *r, const void **data, size_t *size, uint64_t *round, const char **model)
{
	struct kept k;

	*data = NULL;
	*size = 0;
	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	enum err e = program_state_open(&k, &r->work, r->home, &r->why);
	if (e == ERR_CORRUPT)
		events_emit(&r->events, EVENTS_ERROR, "kept.lost",
		    EVENTS_PAIRS(
			EVENTS_S("job", r->work.task.job), EVENTS_S("reason", r->why.text)));
	if (!e)
		e = read_kept(r, &k);
	if (!e) {
		*data = r->kept;
		*size = (size_t)k.file.count;
	}
	if (!e && round)
		*round = k.file.round;
	if (!e && model)
		*model = r->kept_model;
	kept_close(&k);
	return handle_error(e);
}

int
rivulet_abort(struct rivulet *r, const char *reason, const char *log)
{
	return device_abort(r, abort_reason_parse(reason), log);
}

const char *
rivulet_why(const struct rivulet *r)
{
	return r->why.text;
}

const char *
rivulet_device(const struct rivulet *r)
{
	return session_identity(r->session)->device;
}

const char *
rivulet_name(const struct rivulet *r)
{
	return session_identity(r->session)->name;
}

const char *
rivulet_version(void)
{
	return VERSION_RELEASE;
}

const char *
rivulet_error_name(int error)
{
	static const char *const names[] = {"ok", "timeout", "stopped", "invalid", "limit",
	    "no-memory", "io", "not-found", "denied", "corrupt", "unreachable", "refused", "state",
	    "numeric"};

	return error >= 0 && error <= RIVULET_NUMERIC ? names[error] : "unknown";
}

/* FNV-1a over words: a size, then the offsets of that struct's members in the order of the header. */
uint64_t
rivulet_abi(void)
{
	static const size_t words[] = {sizeof(struct rivulet_options), AT(options, home),
	    AT(options, config), AT(options, trainer), AT(options, data), AT(options, examples),
	    AT(options, cancel), AT(options, event), AT(options, context), AT(options, kinds),
	    sizeof(struct rivulet_tensor), AT(tensor, name), AT(tensor, shape), AT(tensor, dims),
	    AT(tensor, count), AT(tensor, data), AT(tensor, trained), AT(tensor, role),
	    AT(tensor, type), AT(tensor, bytes), AT(tensor, size), sizeof(struct rivulet_task),
	    AT(task, id), AT(task, job), AT(task, model), AT(task, round), AT(task, seed),
	    AT(task, deadline_s), AT(task, params), AT(task, recipe), AT(task, tensors),
	    AT(task, tensor_count), AT(task, rate), AT(task, kind), AT(task, batch),
	    AT(task, validation), AT(task, epochs), AT(task, steps), AT(task, seconds),
	    sizeof(struct rivulet_metric), AT(metric, name), AT(metric, value),
	    sizeof(struct rivulet_evaluation), AT(evaluation, examples), AT(evaluation, loss),
	    AT(evaluation, accuracy), sizeof(struct rivulet_result), AT(result, examples),
	    AT(result, steps), AT(result, loss), AT(result, accuracy), AT(result, partial),
	    AT(result, optimizer), AT(result, normaliser), AT(result, evaluate),
	    AT(result, metrics), AT(result, metric_count)};
	uint64_t hash = FNV_BASIS;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		hash = (hash ^ words[i]) * FNV_PRIME;
	return hash;
}
