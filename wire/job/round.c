#include "job_inside.h"

#include <stdio.h>
#include <string.h>

#include "field.h"

#define OVER_SELECT_MAX 100.0
#define SAMPLE_MAX 3600.0
#define PER_DEVICE_MAX 16
/* What most fleets lose less than a hundredth of their work by: rounds of work of a device that is one of `concurrency`. */
#define STALENESS_SPAN 10

static const char *const modes[] = {
    [ROUND_MODE_SYNCHRONOUS] = "synchronous", [ROUND_MODE_BUFFERED] = "buffered", NULL};
static const char *const weights[] = {[STALENESS_SQRT] = "sqrt",
    [STALENESS_INVERSE] = "inverse",
    [STALENESS_CONSTANT] = "constant",
    NULL};
static const char *const divisors[] = {
    [STALENESS_BY_COUNT] = "count", [STALENESS_BY_WEIGHTS] = "weights", NULL};

const char *
job_round_mode(enum round_mode mode)
{
	return modes[mode];
}

const char *
job_weight_word(enum staleness_weight weight)
{
	return weights[weight];
}

const char *
job_divide_word(enum staleness_divide divide)
{
	return divisors[divide];
}

static bool
find_word(const char *const *words, const char *word, unsigned *out)
{
	for (*out = 0; word && words[*out]; ++*out)
		if (strcmp(words[*out], word) == 0)
			return true;
	return false;
}

bool
job_find_weight(const char *word, enum staleness_weight *out)
{
	unsigned at;
	bool found = find_word(weights, word, &at);

	*out = found ? (enum staleness_weight)at : STALENESS_SQRT;
	return found;
}

bool
job_find_divide(const char *word, enum staleness_divide *out)
{
	unsigned at;
	bool found = find_word(divisors, word, &at);

	*out = found ? (enum staleness_divide)at : STALENESS_BY_COUNT;
	return found;
}

/* Keys that say nothing in this mode. */
static void
refuse(struct field *round, const char *const *keys, const char *owner)
{
	for (; *keys; keys++)
		if (field_has(round, *keys))
			field_fail(round, *keys, "belongs to rounds of mode \"%s\"", owner);
}

static void
read_synchronous(struct round_spec *out, struct field *o)
{
	static const char *const picks[] = {"arrival", "sample", NULL};
	static const char *const lates[] = {"drop", "next", NULL};
	static const char *const others[] = {
	    "concurrency", "max_staleness", "per_device", "task_timeout_s", NULL};

	refuse(o, others, "buffered");
	out->over_select = field_double(o, "over_select", 1, OVER_SELECT_MAX, 1);
	out->grace_s = field_double(o, "grace_s", 0, JOB_GRACE_MAX, 10);
	out->sample_s = field_double(o, "sample_s", 0, SAMPLE_MAX, 1);
	out->sample = field_choice(o, "pick", picks, 0) == 1;
	out->max_staleness = (uint32_t)field_choice(o, "late", lates, 0);
	out->per_device = 1 + out->max_staleness;
}

static void
read_buffered(struct round_spec *out, struct field *o)
{
	static const char *const others[] = {
	    "over_select", "grace_s", "sample_s", "pick", "late", NULL};
	const uint32_t goal = out->goal > 0 ? out->goal : 1;
	const uint32_t twice = goal <= JOB_GOAL_MAX / 2 ? 2 * goal : JOB_GOAL_MAX;

	refuse(o, others, "synchronous");
	out->over_select = 1;
	out->concurrency = (uint32_t)field_u64(o, "concurrency", 1, JOB_GOAL_MAX, twice);
	const uint64_t turns = (uint64_t)STALENESS_SPAN * ((out->concurrency + goal - 1) / goal);
	out->max_staleness = (uint32_t)field_u64(o, "max_staleness", 0, JOB_STALENESS_MAX,
	    turns < JOB_STALENESS_MAX ? turns : JOB_STALENESS_MAX);
	out->per_device = (uint32_t)field_u64(o, "per_device", 1, PER_DEVICE_MAX, 1);
	out->task_timeout_s =
	    field_double(o, "task_timeout_s", JOB_TASK_TIMEOUT_MIN, JOB_SECONDS_MAX, 3600);
}

void
job_round_read(struct round_spec *out, struct field *doc)
{
	struct field o = field_object(doc, "round");

	if (!field_has(doc, "round"))
		field_fail(doc, "round", "missing");
	out->mode = (enum round_mode)field_choice(&o, "mode", modes, ROUND_MODE_SYNCHRONOUS);
	out->goal = (uint32_t)field_u64(&o, "goal", 1, JOB_GOAL_MAX, FIELD_MUST_U64);
	out->quorum = (uint32_t)field_u64(&o, "quorum", 1, out->goal, out->goal);
	out->deadline_s = field_double(&o, "deadline_s", JOB_SECONDS_MIN, JOB_SECONDS_MAX, 600);
	if (out->mode == ROUND_MODE_BUFFERED)
		read_buffered(out, &o);
	else
		read_synchronous(out, &o);
	field_end(&o);
}

void
job_round_read_staleness(struct job_spec *out, struct field *aggregate)
{
	struct staleness_spec *s = &out->aggregate.staleness;
	struct field o = field_object(aggregate, "staleness");

	s->weight = (enum staleness_weight)field_choice(&o, "weight", weights, STALENESS_SQRT);
	s->divide = (enum staleness_divide)field_choice(&o, "divide", divisors, STALENESS_BY_COUNT);
	field_end(&o);
	if (!field_has(aggregate, "staleness"))
		return;
	if (out->round.max_staleness == 0)
		field_fail(aggregate, "staleness",
		    "needs round.mode \"buffered\" or round.late \"next\": no delta is stale");
	if (s->divide == STALENESS_BY_WEIGHTS && !job_is_plain_mean(&out->aggregate.rule))
		field_fail(&o, "divide",
		    "\"weights\" goes with the plain mean only: others look at no weights");
}

/* What belongs to one round, or to one base, cannot stand where deltas of several meet. */
void
job_round_check(const struct job_spec *job, struct field *doc)
{
	struct field o = field_object(doc, "round"), local = field_object(doc, "local");
	const bool buffered = job->round.mode == ROUND_MODE_BUFFERED;
	const char *key = buffered ? "mode" : "late";

	if (job->round.max_staleness == 0 && !buffered)
		return;
	if (job->only_evaluates)
		field_fail(&o, key, "an evaluation has one round, which waits for nobody");
	if (job->recipe.local.variates > 0)
		field_fail(&local, "control_variates",
		    "not with round.%s \"%s\": they belong to a round", key,
		    buffered ? "buffered" : "next");
}

/* --- what the fleet must have for it */

uint32_t
job_round_devices(const struct round_spec *round)
{
	const uint32_t each = round->mode == ROUND_MODE_BUFFERED ? round->per_device : 1;

	return each > 1 ? (round->quorum + each - 1) / each : round->quorum;
}

bool
job_round_lacks_devices(char out[JOB_ROUND_SENTENCE], const struct round_spec *round, uint64_t may)
{
	const uint32_t need = job_round_devices(round);

	if (may >= need)
		return false;
	snprintf(out, JOB_ROUND_SENTENCE,
	    "goal: %llu devices may work on it, and a round wants reports of %u",
	    (unsigned long long)may, need);
	return true;
}

bool
job_round_lacks_data(char out[JOB_ROUND_SENTENCE], const struct round_spec *round,
    const struct data_spec *data, uint64_t offer, uint64_t may)
{
	const uint32_t need = job_round_devices(round);

	if (!data->name[0] || offer >= need)
		return false;
	snprintf(out, JOB_ROUND_SENTENCE,
	    "data: %llu of %llu devices have offered \"%s\" with %llu examples or more, and a "
	    "round "
	    "wants reports of %u",
	    (unsigned long long)offer, (unsigned long long)may, data->name,
	    (unsigned long long)data->min_examples, need);
	return true;
}

bool
job_round_lacks_trainer(char out[JOB_ROUND_SENTENCE], const struct round_spec *round,
    const char *trainer, uint64_t offer, uint64_t may)
{
	const uint32_t need = job_round_devices(round);

	if (offer >= need)
		return false;
	snprintf(out, JOB_ROUND_SENTENCE,
	    "trainer: %llu of %llu devices have offered \"%s\", and a round wants reports of %u",
	    (unsigned long long)offer, (unsigned long long)may, trainer, need);
	return true;
}
