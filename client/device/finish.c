#include "finish.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "delta.h"
#include "fault.h"
#include "feedback.h"
#include "handle_inside.h"
#include "json.h"
#include "local.h"
#include "machine.h"
#include "scaffold.h"
#include "send.h"

#define GRACE_S 10.0 /* for sending after the program was told to stop */

_Static_assert(RIVULET_METRICS_MAX == MESSAGES_LIST_MAX, "as many as a report takes");
_Static_assert((int)RIVULET_TRAIN == (int)TASK_TRAIN && (int)RIVULET_EVALUATE == (int)TASK_EVALUATE,
    "rivulet.h has the kinds of task_kind.h");
_Static_assert((int)RIVULET_ROLE_TRAIN == (int)TENSOR_TRAIN &&
	(int)RIVULET_ROLE_AVERAGE == (int)TENSOR_AVERAGE &&
	(int)RIVULET_ROLE_FROZEN == (int)TENSOR_FROZEN &&
	(int)RIVULET_ROLE_LOCAL == (int)TENSOR_LOCAL,
    "rivulet.h has the roles of tensor.h");

enum err
finish_check(const struct finish *f, struct why *why)
{
	if (f->examples < 1 || f->steps < 1)
		return err_set(
		    why, ERR_INVALID, "nothing was trained: examples and steps must be at least 1");
	const char *name = !isfinite(f->loss) ? "loss"
	    : !isfinite(f->normaliser)	      ? "normaliser"
	    : isinf(f->accuracy)	      ? "accuracy"
					      : NULL;
	if (name)
		return err_set(why, ERR_NUMERIC, "%s is not finite", name);
	if (f->accuracy < 0 || f->accuracy > 1)
		return err_set(
		    why, ERR_INVALID, "accuracy is %g, and must be from 0 to 1", f->accuracy);
	return ERR_OK;
}

static bool
is_line(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7f)
			return false;
	return true;
}

static enum err
put_metric(struct report *report, const struct rivulet_metric *m, struct why *why)
{
	struct report_metric *to = &report->metrics[report->metric_count];

	if (!m->name || !*m->name || strlen(m->name) >= sizeof(to->name) || !is_line(m->name))
		return err_set(why, ERR_INVALID,
		    "a metric's name has 1 to %zu bytes and no control characters",
		    sizeof(to->name) - 1);
	for (size_t i = 0; i < report->metric_count; i++)
		if (strcmp(report->metrics[i].name, m->name) == 0)
			return err_set(why, ERR_INVALID, "metric \"%s\" comes twice", m->name);
	if (!isfinite(m->value))
		return err_set(why, ERR_NUMERIC, "metric \"%s\" is not finite", m->name);
	strcpy(to->name, m->name);
	to->value = m->value;
	report->metric_count++;
	return ERR_OK;
}

static enum err
put_evaluation(struct report *report, const struct rivulet_evaluation *v, struct why *why)
{
	if (v->examples == 0)
		return ERR_OK;
	if (isinf(v->loss) || isinf(v->accuracy))
		return err_set(why, ERR_NUMERIC, "the evaluation's %s is not finite",
		    isinf(v->loss) ? "loss" : "accuracy");
	if (v->accuracy < 0 || v->accuracy > 1)
		return err_set(why, ERR_INVALID,
		    "the evaluation's accuracy is %g, and must be from 0 to 1", v->accuracy);
	report->has_evaluate = true;
	report->eval_examples = v->examples;
	report->eval_loss = v->loss;
	report->eval_accuracy = v->accuracy;
	return ERR_OK;
}

enum err
finish_of(
    struct finish *f, struct report *report, const struct rivulet_result *result, struct why *why)
{
	static const uint16_t ids[] = {[RIVULET_OWN] = MANIFEST_EXTERNAL,
	    [RIVULET_SGD] = MANIFEST_SGD,
	    [RIVULET_ADAM] = MANIFEST_ADAM,
	    [RIVULET_ADAMW] = MANIFEST_ADAMW};

	memset(report, 0, sizeof(*report));
	if (result->optimizer < 0 || result->optimizer > RIVULET_ADAMW)
		return err_set(why, ERR_INVALID, "unknown optimizer %d", result->optimizer);
	if (result->metric_count > RIVULET_METRICS_MAX)
		return err_set(why, ERR_LIMIT, "%zu metrics, and at most %d are taken",
		    result->metric_count, RIVULET_METRICS_MAX);
	*f = (struct finish){.examples = result->examples,
	    .steps = result->steps,
	    .loss = result->loss,
	    .accuracy = result->accuracy,
	    .partial = result->partial != 0,
	    .normaliser = result->normaliser != 0 ? result->normaliser : (double)result->steps,
	    .optimizer = ids[result->optimizer]};
	enum err e = put_evaluation(report, &result->evaluate, why);
	for (size_t i = 0; !e && i < result->metric_count; i++)
		e = put_metric(report, &result->metrics[i], why);
	if (report->has_evaluate || report->metric_count > 0)
		f->report = report;
	return e;
}

enum err
finish_check_counted(const struct report_counted *c, struct why *why)
{
	if (!(c->loss_count >= 0 && c->loss_count <= REPORT_COUNT_MAX))
		return err_set(why, ERR_INVALID, "loss_count is %g, and must be from 0 to %g",
		    c->loss_count, REPORT_COUNT_MAX);
	if (c->right > c->labels || c->labels > JSON_INT_MAX)
		return err_set(why, ERR_INVALID, "%llu labels are right of %llu that count",
		    (unsigned long long)c->right, (unsigned long long)c->labels);
	return ERR_OK;
}

void
finish_count(struct finish *f, struct report *report, const struct report_counted counted[2])
{
	report->trained = counted[TASK_TRAIN];
	if (report->has_evaluate)
		report->evaluated = counted[TASK_EVALUATE];
	if (report->trained.told && !(report->trained.loss_count > 0))
		f->loss = 0;
	if (report->trained.has_labels)
		f->accuracy = messages_report_accuracy(&report->trained);
	if (report->evaluated.has_labels)
		report->eval_accuracy = messages_report_accuracy(&report->evaluated);
	if (report->evaluated.told && !(report->evaluated.loss_count > 0))
		report->eval_loss = NAN;
	if (report->trained.told)
		f->report = report;
}

/* Before the delta can be sent: it counts from the moment it is accepted. */
static enum err
keep_variate(struct rivulet *r, const struct delta *delta)
{
	struct delta_decoded decoded;

	if (delta_decoded(&decoded, delta, 1))
		return err_set(&r->why, ERR_INVALID, "the variate cannot be decoded");
	const struct codec_elements change = delta_decoded_values(&decoded);
	return scaffold_keep(&r->work, r->home, &change, &r->why);
}

/* The delta of the training, and what is kept of it. */
static enum err
make_delta(struct rivulet *r, const struct delta_facts *facts, const struct codec_elements *values,
    const struct outbox_draft *draft, struct delta *out)
{
	const struct work *w = &r->work;
	const struct scaffold_change change = scaffold_change_of(w, values, facts->steps);
	const struct codec_elements second = scaffold_change_values(&change);
	bool feeds = work_feedback(w), variates = work_variates(w);
	struct feedback feedback = {.residual = {.fd = -1}};
	enum err e = feeds ? feedback_init(&feedback, r, values, &r->why) : ERR_OK;
	const struct codec_elements sum = feeds ? feedback_values(&feedback) : *values;
	const struct delta_input in = {.values = &sum,
	    .second = variates ? &second : NULL,
	    .elements = w->table.elements,
	    .fd = draft->fd,
	    .at = draft->body_at};

	if (!e)
		e = delta_make(out, facts, &in, session_key(r->session), &r->why);
	if (!e && feeds)
		e = feedback_keep(&feedback, r, out, &r->why);
	if (!e && variates)
		e = keep_variate(r, out);
	feedback_deinit(&feedback);
	return e;
}

static enum err
make(struct rivulet *r, const struct finish *f, const struct buf *report,
    const struct outbox_draft *draft, struct delta *out)
{
	const struct work *w = &r->work;
	struct work_delta source;
	const struct delta_facts facts = {.task = &w->task,
	    .device = session_device(r->session),
	    .examples = f->examples,
	    .steps = f->steps,
	    .loss = f->loss,
	    .accuracy = f->accuracy,
	    .normaliser = f->normaliser,
	    .optimizer = f->optimizer,
	    .partial = f->partial,
	    .report = report->len ? report->data : NULL,
	    .report_len = report->len,
	    .made_at_ms = machine_time_ms()};
	if (w->task.kind == TASK_EVALUATE)
		return delta_evaluation(out, &facts, session_key(r->session), &r->why);
	enum err e = work_delta_open(&source, w, &r->why);
	const struct codec_elements values = work_delta_values(&source);
	if (!e)
		e = make_delta(r, &facts, &values, draft, out);
	if (!e)
		e = work_unchanged(w, &r->why);
	work_delta_close(&source);
	return e;
}

/* Delta, manifest and report on disk: from here on a killed client loses nothing. */
static enum err
keep(struct rivulet *r, const struct finish *f)
{
	const struct work *w = &r->work;
	struct delta delta = {.leaves = NULL};
	struct outbox_draft draft = {.fd = -1};
	struct buf report;
	uint64_t least = w->task.kind == TASK_EVALUATE
	    ? 0
	    : delta_least(&w->task, w->table.elements, work_variates(w));
	enum err e = ERR_OK;

	buf_init(&report, REPORT_MAX);
	if (f->report && (e = messages_report_encode(&report, f->report)))
		err_set(&r->why, e, "the report cannot be written: %s", err_name(e));
	if (!e)
		e = outbox_begin(&draft, &r->outbox, w->task.task, report.len, least, &r->why);
	if (!e)
		e = make(r, f, &report, &draft, &delta);
	FAULT("client.delta");
	const struct outbox_item item = {.manifest = delta.manifest,
	    .report = report.data,
	    .report_len = report.len,
	    .leaves = delta.leaves,
	    .leaves_len = delta.leaves_len,
	    .payload_len = delta.payload_len};
	if (!e)
		e = outbox_commit(&draft, &r->outbox, &item, &r->why);
	if (e)
		residual_refuse(&r->residual, w->task.task);
	outbox_discard(&draft);
	delta_deinit(&delta);
	buf_deinit(&report);
	return e;
}

/* After the delta, so that a task given back leaves the local tensors where they were. Should this fail, the delta still
 * counts: the next round begins with the local tensors of the round before, as on a device that missed a round. */
static void
save_local(struct rivulet *r)
{
	struct why why;

	if (local_save(&r->work, r->home, &why))
		events_emit(&r->events, EVENTS_ERROR, "local.failed",
		    EVENTS_PAIRS(EVENTS_S("job", r->work.task.job), EVENTS_S("reason", why.text)));
}

static enum err
check_evaluation(const struct finish *f, struct why *why)
{
	if (f->report && f->report->has_evaluate && f->report->eval_examples == f->examples &&
	    f->examples > 0)
		return ERR_OK;
	return err_set(why, ERR_INVALID, "nothing was evaluated: examples must be at least 1");
}

/* What no coordinator takes of this job costs an upload less. */
static enum err
check_claim(struct rivulet *r, const struct finish *f)
{
	uint64_t most = r->work.task.max_examples;
	uint64_t measured = f->report && f->report->has_evaluate ? f->report->eval_examples : 0;

	if (most == 0 || (f->examples <= most && measured <= most))
		return ERR_OK;
	return err_set(&r->why, ERR_LIMIT,
	    "%llu examples, and the job lets a device claim %llu (aggregate.max_examples)",
	    (unsigned long long)(f->examples > most ? f->examples : measured),
	    (unsigned long long)most);
}

int
finish_submit(struct rivulet *r, const struct finish *f)
{
	char task[33];

	if (!r->has_work)
		return handle_error(err_set(&r->why, ERR_STATE, "no task in hand"));
	bool evaluates = r->work.task.kind == TASK_EVALUATE;
	enum err e = evaluates ? check_evaluation(f, &r->why) : finish_check(f, &r->why);
	if (!e && !evaluates && work_variates(&r->work) && f->optimizer != MANIFEST_SGD)
		e = err_set(&r->why, ERR_INVALID,
		    "a job with control variates needs plain SGD: report.json says \"optimizer\": "
		    "0");
	if (!e)
		e = check_claim(r, f);
	if (!e)
		e = keep(r, f);
	/* What the system keeps from this user is as good as read-only. */
	r->failed = e == ERR_DENIED ? ERR_READONLY : e;
	if (e)
		return handle_error(r->failed);
	FAULT("client.kept");
	if (!evaluates)
		save_local(r);
	for (size_t i = 0; i < sizeof(task); i++)
		task[i] = r->work.task.task[i];
	handle_drop(r);
	if (handle_cancelled(r))
		r->grace_until = backoff_now() + GRACE_S;
	e = send_delta(r, task, &r->why);
	r->grace_until = 0;
	if (!e)
		backoff_reset(&r->idle);
	return e == ERR_STATE ? RIVULET_REFUSED : handle_error(e);
}
