#include "ask.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "device.h"
#include "hex.h"
#include "home.h"
#include "json.h"
#include "machine.h"
#include "send.h"
#include "version.h"

#define ANSWER_MAX (1u << 20)
#define OFFER_MAX (256u << 10)
#define IDLE_MARGIN_S 30.0
#define PAUSE_AFTER_ABORT_S 1.0
#define PAUSE_MAX_S 3600.0

static size_t
put_names(message_name out[MESSAGES_LIST_MAX], const char *const *names)
{
	size_t n = 0;

	for (; n < MESSAGES_LIST_MAX && names[n]; n++)
		snprintf(out[n], sizeof(out[n]), "%s", names[n]);
	return n;
}

static void
drop_feature(struct offer *o, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->feature_count; i++)
		if (strcmp(o->features[i], name) != 0)
			memmove(o->features[kept++], o->features[i], sizeof(o->features[i]));
	o->feature_count = kept;
}

/* Tasks of kind evaluate of jobs that have "evaluate": {"by": "program"}, and no others: without the feature of those no coordinator gives
 * it any. The job may train with whatever trainer. */
static enum err
put_evaluator(struct offer *o, const char *trainer, struct why *why)
{
	if (strlen(trainer) >= RECIPE_NAME_MAX || !*trainer)
		return err_set(why, ERR_INVALID, "the trainer's name is too long, or empty");
	drop_feature(o, RECIPE_FEATURE_EVALUATE);
	drop_feature(o, RECIPE_FEATURE_TRAINER_VARIATES);
	drop_feature(o, RECIPE_FEATURE_MAX_EXAMPLES);
	strcpy(o->evaluators[o->evaluator_count++], trainer);
	strcpy(o->features[o->feature_count++], RECIPE_FEATURE_EVALUATE_PROGRAM);
	return ERR_OK;
}

static enum err
put_loop(struct offer *o, const struct rivulet_options *options, struct why *why)
{
	const char *trainer = options->trainer, *data = options->data;
	/* A central set has no name among the fleet's, and any job may have its models measured on it. */
	const bool only_evaluates = options->kinds == 1u << RIVULET_EVALUATE;

	if (!trainer && !data)
		return ERR_OK;
	if (only_evaluates && trainer && !data)
		return put_evaluator(o, trainer, why);
	if (!trainer || !data || strlen(trainer) >= RECIPE_NAME_MAX ||
	    strlen(data) >= RECIPE_NAME_MAX || recipe_names_builtin(trainer) ||
	    options->examples < 1)
		return err_set(why, ERR_INVALID, "trainer, data and examples belong together");
	if (options->kinds >> TASK_UNKNOWN)
		return err_set(
		    why, ERR_INVALID, "kinds has a kind that this library does not know");
	/* A loop is handed no files. */
	drop_feature(o, RECIPE_FEATURE_TRAINER_VARIATES);
	/* Nor is its work ours to cut: rivulet_can. */
	drop_feature(o, RECIPE_FEATURE_MAX_EXAMPLES);
	if (options->kinds & 1u << RIVULET_EVALUATE)
		strcpy(o->evaluators[o->evaluator_count++], trainer);
	if (options->kinds == 0 || options->kinds & 1u << RIVULET_TRAIN)
		strcpy(o->trainers[o->trainer_count++], trainer);
	strcpy(o->data[0].name, data);
	o->data[0].examples = options->examples;
	o->data_count = 1;
	return ERR_OK;
}

enum err
ask_offer(struct rivulet *r, const struct rivulet_options *options, struct why *why)
{
	struct offer *o = r->offer = calloc(1, sizeof(*o));

	if (!o)
		return err_set(why, ERR_NOMEM, "no memory for an offer");
	snprintf(o->agent, sizeof(o->agent), "%s", version_text());
	o->protocol = MESSAGES_PROTOCOL;
	machine_id(o->machine);
	o->memory_bytes = device_memory(r);
	o->codec_count = put_names(o->codecs, codec_names());
	o->layer_count = put_names(o->layers, net_spec_type_names());
	o->feature_count = put_names(o->features, recipe_feature_names());
	/* A loop of the owner's gives none unless it says so: rivulet_can. */
	o->says_figures = true;
	return put_loop(o, options, why);
}

/* Said once, and to the coordinator with each request. */
static void
note_verdict(struct rivulet *r)
{
	const struct verdict *v = handle_verdict(r);

	if (strcmp(v->word, r->unready) == 0)
		return;
	if (*v->word)
		events_emit(&r->events, EVENTS_INFO, "unready",
		    EVENTS_PAIRS(EVENTS_S("reason", v->word), EVENTS_S("why", v->text)));
	else
		events_emit(
		    &r->events, EVENTS_INFO, "ready", EVENTS_PAIRS(EVENTS_S("after", r->unready)));
	memcpy(r->unready, v->word, sizeof(r->unready));
	memcpy(r->waiting, v->word, sizeof(r->waiting));
	if (*v->word)
		home_note(r->home, "waiting", v->word);
}

/* A coordinator that does not know `unready` gives no task to a device without trainers. */
static enum err
encode_unready(const struct rivulet *r, struct buf *out)
{
	struct offer *o = r->offer;
	size_t trainers = o->trainer_count, evaluators = o->evaluator_count;

	o->trainer_count = o->evaluator_count = 0;
	enum err e = messages_offer_encode(out, o);
	o->trainer_count = trainers;
	o->evaluator_count = evaluators;
	return e;
}

static enum err
encode_offer(struct rivulet *r, unsigned wait_s, struct buf *out, struct why *why)
{
	struct offer *o = r->offer;

	o->unsent_count = outbox_list(&r->outbox, o->unsent, MESSAGES_LIST_MAX);
	o->wait_s = wait_s;
	o->time_ms = machine_time_ms();
	o->has_disk_free = machine_disk_free(r->home, &o->disk_free_bytes);
	o->held_count = cache_list(&r->cache, o->held_models, MESSAGES_LIST_MAX);
	memcpy(o->unready, r->unready, sizeof(o->unready));
	job_backoff_offer(&r->job_backoff, o, backoff_now());
	enum err e = *r->unready ? encode_unready(r, out) : messages_offer_encode(out, o);
	return e ? err_set(why, e, "the offer cannot be written: %s", err_name(e)) : ERR_OK;
}

/* Until the first of the jobs has rested that the coordinator was told of. */
static double
next_rested(const struct rivulet *r)
{
	double now = backoff_now(), next = INFINITY;
	char job[33];

	for (size_t i = 0; i < r->offer->resting_count; i++) {
		hex_encode(job, r->offer->resting[i].job, sizeof(r->offer->resting[i].job));
		next = fmin(next, job_backoff_left(&r->job_backoff, job, now));
	}
	return next;
}

static void
take_wait(
    struct rivulet *r, const struct task *t, const struct transport_answer *answer, double *pause_s)
{
	const char *reason = *r->unready ? r->unready : t->reason;
	double after = answer->retry_after_s >= 0 ? answer->retry_after_s : (double)t->wait_s;

	if (after > PAUSE_MAX_S)
		after = PAUSE_MAX_S;
	*pause_s = fmin(backoff_after(session_backoff(r->session), after), next_rested(r));
	if (strcmp(r->waiting, reason) != 0) {
		events_emit(&r->events, EVENTS_INFO, "waiting",
		    EVENTS_PAIRS(EVENTS_S("reason", reason), EVENTS_D("seconds", after)));
		bool is_short = strcmp(reason, wait_reason_name(WAIT_OUT_OF_MEMORY)) == 0;
		home_note(r->home, "waiting", is_short && *r->shortage ? r->shortage : reason);
	}
	memcpy(r->waiting, reason, sizeof(r->waiting));
}

/* What stands in the message about a task that cannot be decoded as a whole. */
struct peeked {
	char task[33], job[33];
	bool known; /* its kind */
};

static bool
copy_id(char out[33], const struct json *v)
{
	const char *id = json_string(v);
	bool found = id && strlen(id) == 32 && strspn(id, "0123456789abcdef") == 32;

	if (found)
		memcpy(out, id, 33);
	return found;
}

static bool
peek(struct peeked *out, const char *text, size_t len)
{
	struct json *doc = NULL;

	out->known = true;
	if (json_parse(&doc, text, len, NULL))
		return false;
	const char *kind = json_string(json_get(doc, "kind"));
	bool found =
	    copy_id(out->task, json_get(doc, "task")) && copy_id(out->job, json_get(doc, "job"));
	out->known = !kind || task_kind_find(kind) != TASK_UNKNOWN;
	json_free(doc);
	return found;
}

static enum err
give_back(struct rivulet *r, const struct peeked *at, enum abort_reason reason,
    const struct why *what, double *pause_s)
{
	struct why ignored;

	enum err e = send_abort(r, at->task, abort_reason_cause(reason), what->text, &ignored);
	handle_failed(r, at->job, reason, 0);
	*pause_s = r->job_rests ? 0 : PAUSE_AFTER_ABORT_S;
	return e == ERR_AGAIN ? e : ERR_TIMEOUT;
}

static enum err
hold_task(struct rivulet *r, const char *text, struct why *why)
{
	struct work *w = &r->work;

	w->came_at = r->began_at = backoff_now();
	w->text = strdup(text);
	if (!w->text) {
		work_deinit(w);
		return err_set(why, ERR_NOMEM, "no memory for a task");
	}
	r->waiting[0] = '\0';
	r->has_work = true;
	home_note(r->home, "working", w->task.job);
	events_emit(&r->events, EVENTS_INFO, "task.received",
	    EVENTS_PAIRS(EVENTS_S("job", w->task.job), EVENTS_U("round", w->task.round),
		EVENTS_S("model", w->task.model), EVENTS_D("deadline_s", w->task.deadline_s),
		SESSION_REQUEST(r->session)));
	return ERR_OK;
}

static enum err
take_task(
    struct rivulet *r, const struct transport_answer *answer, double *pause_s, struct why *why)
{
	struct work *w = &r->work;
	const char *text = buf_str(&answer->body);
	struct peeked at;
	bool found = peek(&at, text, answer->body.len);

	if (found && !at.known) {
		err_set(why, ERR_UNSUPPORTED, "this agent does not know the kind of task");
		return give_back(r, &at, ABORT_UNKNOWN_KIND, why, pause_s);
	}
	enum err e = messages_task_decode(&w->task, text, answer->body.len, why);
	if (e) {
		work_deinit(w);
		return found ? give_back(r, &at, ABORT_UNSUPPORTED, why, pause_s) : e;
	}
	session_renew_asked(r->session, w->task.renew, !w->task.wait);
	if (w->task.wait) {
		take_wait(r, &w->task, answer, pause_s);
		work_deinit(w);
		return ERR_TIMEOUT;
	}
	return hold_task(r, text, why);
}

enum err
ask_once(struct rivulet *r, unsigned wait_s, double *pause_s, struct why *why)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct transport_answer answer;
	struct buf text;

	*pause_s = 0;
	note_verdict(r);
	buf_init(&text, OFFER_MAX);
	enum err e = encode_offer(r, wait_s, &text, why);
	if (e) {
		buf_deinit(&text);
		return e;
	}
	const struct session_call call = {.path = "/v1/tasks",
	    .attempts = 1,
	    .request = {.method = "POST",
		.headers = headers,
		.body = text.data,
		.body_len = text.len,
		.answer_max = ANSWER_MAX,
		.idle_s = wait_s + IDLE_MARGIN_S}};
	r->asking = true;
	e = session_do(r->session, &call, &answer, why);
	r->asking = false;
	enum problem_type problem = PROBLEM_NONE;
	const bool answered = !e;
	if (answered)
		e = session_problem(&answer, &problem, why);
	handle_answered(r, answered ? &answer : NULL, e, problem);
	if (!e)
		e = take_task(r, &answer, pause_s, why);
	else if (answer.retry_after_s > 0)
		*pause_s = backoff_after(session_backoff(r->session), answer.retry_after_s);
	transport_answer_deinit(&answer);
	buf_deinit(&text);
	return e;
}
