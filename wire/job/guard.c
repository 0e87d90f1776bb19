#include "job_inside.h"

#include <string.h>

#include "codec.h"
#include "field.h"
#include "job.h"
#include "json.h"

#define FACTOR_MAX 1e6
#define DROP_MAX 1e30 /* of an own metric */
#define ROUNDS_MAX 1000
#define TIMES_MAX 1000000
#define REPORTS_MAX 1000000
#define WARMUP_MAX 1000000

/* The two measures exclude each other: each belongs to one metric. */
static void
read_measure(struct guard_spec *s, struct field *o)
{
	static const char *const names[] = {
	    [GUARD_ACCURACY] = "accuracy", [GUARD_LOSS] = "loss", [GUARD_OWN] = "this metric"};
	bool rises = s->metric == GUARD_ACCURACY || s->rises;
	const char *own = rises ? "drop" : "factor", *other = rises ? "factor" : "drop";
	double most = s->metric == GUARD_ACCURACY ? 1 : DROP_MAX;

	s->drop = field_double(o, "drop", 0, most, rises ? FIELD_MUST_DOUBLE : 0);
	s->factor = field_double(o, "factor", 1, FACTOR_MAX, rises ? 1 : FIELD_MUST_DOUBLE);
	if (field_has(o, other))
		field_fail(o, other, "belongs to %s; %s has \"%s\"", rises ? "loss" : "accuracy",
		    names[s->metric], own);
}

/* Of the three, an own metric is the monitor's, which says whether more is better. */
static void
read_metric(struct job_spec *out, struct field *o)
{
	static const char *const metrics[] = {
	    [GUARD_ACCURACY] = "accuracy", [GUARD_LOSS] = "loss", NULL};
	const char *word = json_string(json_get(o->value, "metric"));
	struct guard_spec *s = &out->guard;
	struct monitor_spec named;

	if (word && job_monitor_find(&named, word) && named.metric == MONITOR_OWN) {
		field_has(o, "metric");
		(void)job_monitor_takes(out, word, o, "metric");
		s->metric = GUARD_OWN;
		s->rises = out->monitor.rises;
		return;
	}
	s->metric = (enum guard_metric)field_choice(o, "metric", metrics, FIELD_MUST_CHOICE);
}

/* In any codec that a device may choose. */
static bool
feeds_back(const struct upload_spec *u)
{
	bool any = false;

	for (size_t i = 0; i < u->codec_count; i++) {
		const struct codec *codec = codec_find_name(u->codecs[i]);
		any = any || (codec && recipe_upload_feedback(u, codec));
	}
	return any;
}

static void
check(const struct job_spec *job, struct field *o)
{
	const struct recipe *r = &job->recipe;

	if (r->evaluate_by == EVALUATE_NONE && job->guard.metric != GUARD_OWN)
		field_fail(o, NULL, "needs \"evaluate\": nothing would measure it");
	if (job->guard.metric == GUARD_ACCURACY && r->net.layer_count && !net_spec_labels(&r->net))
		field_fail(o, "metric", "the job's loss has no accuracy");
	if (job->guard.action != GUARD_DO_ROLLBACK && field_has(o, "times"))
		field_fail(o, "times", "belongs to \"do\": \"rollback\"");
	/* What devices keep of deltas that led into the collapse would not go back. */
	if (job->guard.action == GUARD_DO_ROLLBACK && feeds_back(&r->upload))
		field_fail(o, "do", "\"rollback\" cannot work with upload.feedback%s",
		    r->upload.says_feedback ? "" : ", which sparse has unless it is false");
}

void
job_guard_read(struct job_spec *out, struct field *doc)
{
	static const char *const actions[] = {[GUARD_DO_STOP] = "stop",
	    [GUARD_DO_PAUSE] = "pause",
	    [GUARD_DO_ROLLBACK] = "rollback",
	    NULL};
	struct field o = field_object(doc, "guard");
	struct guard_spec *s = &out->guard;

	s->on = field_has(doc, "guard");
	if (!s->on)
		return;
	read_metric(out, &o);
	read_measure(s, &o);
	s->window = (uint32_t)field_u64(&o, "window", 1, GUARD_WINDOW_MAX, 10);
	s->rounds = (uint32_t)field_u64(&o, "rounds", 1, ROUNDS_MAX, 1);
	s->action = (enum guard_action)field_choice(&o, "do", actions, FIELD_MUST_CHOICE);
	s->times = (uint32_t)field_u64(&o, "times", 0, TIMES_MAX, 3);
	check(out, &o);
	field_end(&o);
}

void
job_guard_read_scale(struct job_spec *out, struct field *server)
{
	static const char *const kinds[] = {
	    [SCALE_NONE] = "", [SCALE_LINEAR] = "linear", [SCALE_SQRT] = "sqrt", NULL};
	struct field o = field_object(server, "scale");
	struct scale_spec *s = &out->aggregate.scale;
	const struct local_spec *local = &out->recipe.local;

	if (!field_has(server, "scale"))
		return;
	s->by = (enum scale_by)field_choice(&o, "by", kinds, FIELD_MUST_CHOICE);
	if (s->by == SCALE_NONE)
		field_fail(&o, "by", "must be one of \"linear\", \"sqrt\"");
	s->reports = (uint32_t)field_u64(&o, "reports", 1, REPORTS_MAX, FIELD_MUST_U64);
	s->warmup = (uint32_t)field_u64(&o, "warmup", 0, WARMUP_MAX, 0);
	if (local->unit != LOCAL_STEPS || local->amount > 1)
		field_fail(&o, NULL,
		    "needs \"local\": {\"steps\": 1}: after several steps a delta is no gradient");
	if (local->optimizer.type != OPTIMIZER_SGD)
		field_fail(&o, NULL, "adam and adamw make their own length; use sgd");
	if (strcmp(out->aggregate.rule.name, "krum") == 0)
		field_fail(&o, NULL, "krum's picks stay as many, however many report");
	field_end(&o);
}
