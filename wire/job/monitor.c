#include "job_inside.h"

#include <stdio.h>
#include <string.h>

#include "field.h"
#include "job.h"
#include "recipe.h"

#define OWN "metrics."
#define WORD_MAX (sizeof(OWN) + RECIPE_NAME_MAX)
#define KEPT_MAX 1000000

static const char *const words[] = {[MONITOR_NONE] = "",
    [MONITOR_ACCURACY] = "accuracy",
    [MONITOR_LOSS] = "loss",
    [MONITOR_OWN] = OWN};

bool
job_monitor_find(struct monitor_spec *out, const char *word)
{
	size_t own = strlen(OWN), len = strlen(word);

	*out = (struct monitor_spec){.metric = MONITOR_NONE};
	if (strcmp(word, words[MONITOR_ACCURACY]) == 0)
		out->metric = MONITOR_ACCURACY;
	else if (strcmp(word, words[MONITOR_LOSS]) == 0)
		out->metric = MONITOR_LOSS;
	else if (strncmp(word, OWN, own) == 0 && len > own && len - own < sizeof(out->name)) {
		out->metric = MONITOR_OWN;
		memcpy(out->name, word + own, len - own + 1);
	}
	out->rises = out->metric == MONITOR_ACCURACY;
	return out->metric != MONITOR_NONE;
}

void
job_monitor_word(char out[JOB_MONITOR_WORD], const struct monitor_spec *m)
{
	snprintf(out, JOB_MONITOR_WORD, "%s%s", words[m->metric], m->name);
}

static bool
has_accuracy(const struct recipe *r)
{
	return r->net.layer_count > 0 ? net_spec_labels(&r->net) : r->data.class_count > 0;
}

static void
read_mode(struct monitor_spec *m, struct field *o)
{
	static const char *const modes[] = {"min", "max", NULL};
	bool own = m->metric == MONITOR_OWN;
	int rises = field_choice(o, "mode", modes, own ? FIELD_MUST_CHOICE : (int)m->rises);

	if (!own && rises != (int)m->rises)
		field_fail(o, "mode", "of %s it is \"%s\"", words[m->metric], modes[m->rises]);
	m->rises = rises == 1;
}

void
job_monitor_read(struct job_spec *out, struct field *doc)
{
	struct field o = field_object(doc, "monitor");
	const struct recipe *r = &out->recipe;
	struct monitor_spec *m = &out->monitor;
	char word[WORD_MAX];

	if (!field_has(doc, "monitor")) {
		if (r->evaluate_by != EVALUATE_NONE)
			(void)!job_monitor_find(
			    m, words[has_accuracy(r) ? MONITOR_ACCURACY : MONITOR_LOSS]);
		return;
	}
	field_string(&o, "metric", FIELD_LINE, word, sizeof(word), NULL);
	if (!job_monitor_find(m, word))
		field_fail(&o, "metric", "must be \"accuracy\", \"loss\" or \"metrics.NAME\"");
	read_mode(m, &o);
	if (m->metric != MONITOR_OWN && r->evaluate_by == EVALUATE_NONE)
		field_fail(&o, "metric", "needs \"evaluate\": nothing would measure it");
	if (m->metric == MONITOR_ACCURACY && r->net.layer_count && !has_accuracy(r))
		field_fail(&o, "metric", "the job's loss has no accuracy");
	field_end(&o);
}

bool
job_monitor_takes(const struct job_spec *job, const char *word, struct field *at, const char *key)
{
	struct monitor_spec m;

	if (job_monitor_find(&m, word) && m.metric == MONITOR_OWN &&
	    job->monitor.metric == MONITOR_OWN && strcmp(m.name, job->monitor.name) == 0)
		return true;
	return field_fail(at, key,
	    "an own metric must be that of \"monitor\", which says whether more is better");
}

void
job_monitor_read_keep(struct job_spec *out, struct field *doc)
{
	struct field o = field_object(doc, "keep");
	struct keep_spec *k = &out->keep;

	k->last = (uint32_t)field_u64(&o, "last", 1, KEPT_MAX, JOB_KEEP_CONFIGURED);
	k->every = (uint32_t)field_u64(&o, "every", 0, KEPT_MAX, JOB_KEEP_CONFIGURED);
	k->best = (uint32_t)field_u64(&o, "best", 1, JOB_KEEP_BEST_MAX, 1);
	if (field_has(&o, "best") && out->monitor.metric == MONITOR_NONE)
		field_fail(&o, "best", "needs \"evaluate\" or \"monitor\": nothing says which");
	field_end(&o);
}
