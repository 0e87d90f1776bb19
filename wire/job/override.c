#include "override.h"

#include <string.h>

#include "field.h"
#include "job.h"
#include "job_inside.h"
#include "json.h"
#include "recipe_inside.h"

/* Where a path says something. */
enum place { ANYWHERE, TRAINING, SYNCHRONOUS, BUFFERED, MEASURED };

static const struct row {
	const char *path;
	enum place place;
	bool whole;
	double min, max;
	bool lowers; /* the document's value is the most */
} rows[OVERRIDE_KEYS] = {
    [OVERRIDE_SHARE] = {"share", ANYWHERE, true, 1, JOB_SHARE_MAX, false},
    [OVERRIDE_PRIORITY] = {"priority", ANYWHERE, true, -JOB_PRIORITY_MAX, JOB_PRIORITY_MAX, false},
    [OVERRIDE_ROUND_DEADLINE] = {"round.deadline_s", ANYWHERE, false, JOB_SECONDS_MIN,
	JOB_SECONDS_MAX, false},
    [OVERRIDE_ROUND_GRACE] = {"round.grace_s", SYNCHRONOUS, false, 0, JOB_GRACE_MAX, false},
    [OVERRIDE_ROUND_TASK_TIMEOUT] = {"round.task_timeout_s", BUFFERED, false, JOB_TASK_TIMEOUT_MIN,
	JOB_SECONDS_MAX, false},
    [OVERRIDE_ROUND_CONCURRENCY] = {"round.concurrency", BUFFERED, true, 1, JOB_GOAL_MAX, false},
    [OVERRIDE_STOP_ROUNDS] = {"stop.rounds", TRAINING, true, 0, JOB_STOP_ROUNDS_MAX, false},
    [OVERRIDE_STOP_REPORTS] = {"stop.reports", TRAINING, true, 0, (double)JOB_STOP_REPORTS_MAX,
	false},
    [OVERRIDE_STOP_SECONDS] = {"stop.seconds", TRAINING, false, 0, JOB_STOP_SECONDS_MAX, false},
    [OVERRIDE_EVALUATE_DEADLINE] = {"evaluate.deadline_s", MEASURED, false, RECIPE_EVALUATE_MIN,
	RECIPE_EVALUATE_MAX, false},
    [OVERRIDE_ROUND_GOAL] = {"round.goal", ANYWHERE, true, 1, JOB_GOAL_MAX, true},
    [OVERRIDE_ROUND_QUORUM] = {"round.quorum", ANYWHERE, true, 1, JOB_GOAL_MAX, true},
};

const char *
override_path(enum override_key key)
{
	return rows[key].path;
}

enum override_key
override_find(const char *path)
{
	enum override_key key = 0;

	while (key < OVERRIDE_KEYS && strcmp(rows[key].path, path) != 0)
		key++;
	return key;
}

/* --- text */

static void
read_key(struct override_set *out, enum override_key key, struct field *root)
{
	const struct row *r = &rows[key];

	if (!field_has(root, r->path))
		return;
	if (json_kind(json_get(root->value, r->path)) == JSON_NULL) {
		out->state[key] = OVERRIDE_REMOVED;
		return;
	}
	out->state[key] = OVERRIDE_GIVEN;
	out->value[key] = r->whole
	    ? (double)field_i64(root, r->path, (int64_t)r->min, (int64_t)r->max, 0)
	    : field_double(root, r->path, r->min, r->max, 0);
}

enum err
override_parse(struct override_set *out, const char *text, size_t len, struct why *why)
{
	struct field_reader reader = {
	    .strict = true, .why = why, .synonyms = recipe_synonym_table()};
	struct json *doc = NULL;

	*out = (struct override_set){.state = {OVERRIDE_ABSENT}};
	if (len > OVERRIDE_TEXT_MAX)
		return err_set(why, ERR_LIMIT, "larger than %u bytes", OVERRIDE_TEXT_MAX);
	enum err e = json_parse(&doc, text, len, why);
	if (e)
		return e;
	struct field root = field_root(&reader, doc);
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		read_key(out, key, &root);
	field_end(&root);
	json_free(doc);
	if (reader.err)
		*out = (struct override_set){.state = {OVERRIDE_ABSENT}};
	return reader.err;
}

struct json *
override_json(const struct override_set *o)
{
	struct json *v = json_object();

	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		if (o->state[key] == OVERRIDE_REMOVED)
			json_add_null(v, rows[key].path);
		else if (o->state[key] == OVERRIDE_GIVEN)
			json_add_double(v, rows[key].path, o->value[key]);
	return v;
}

bool
override_is_empty(const struct override_set *o)
{
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		if (o->state[key] != OVERRIDE_ABSENT)
			return false;
	return true;
}

/* --- what they mean */

/* Why a path says nothing of this job; NULL: it does. */
static const char *
misplaced(enum place place, const struct job_spec *document)
{
	const bool buffered = document->round.mode == ROUND_MODE_BUFFERED;

	if (place == TRAINING && document->only_evaluates)
		return "an evaluation has none";
	if (place == SYNCHRONOUS && buffered)
		return "belongs to rounds of mode \"synchronous\"";
	if (place == BUFFERED && !buffered)
		return "belongs to rounds of mode \"buffered\"";
	if (place == MEASURED && document->recipe.evaluate_by == EVALUATE_NONE)
		return "needs \"evaluate\"";
	return NULL;
}

/* More reports than the document says were not checked against the spool, the aggregation rule and the owner's limits. */
static enum err
check_lowered(const struct override_set *o, const struct job_spec *document, struct why *why)
{
	const struct override_set none = {.state = {OVERRIDE_ABSENT}};
	struct job_terms terms;

	override_terms(&terms, document, &none);
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		if (rows[key].lowers && o->state[key] == OVERRIDE_GIVEN &&
		    o->value[key] > override_value(&terms, key))
			return err_set(why, ERR_INVALID,
			    "%s: can only be lowered, and the document says %.10g", rows[key].path,
			    override_value(&terms, key));
	if (o->state[OVERRIDE_ROUND_GOAL] == OVERRIDE_GIVEN &&
	    o->state[OVERRIDE_ROUND_QUORUM] == OVERRIDE_GIVEN &&
	    o->value[OVERRIDE_ROUND_QUORUM] > o->value[OVERRIDE_ROUND_GOAL])
		return err_set(why, ERR_INVALID, "round.quorum: is more than round.goal");
	return ERR_OK;
}

enum err
override_check(const struct override_set *o, const struct job_spec *document, struct why *why)
{
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++) {
		const char *wrong = misplaced(rows[key].place, document);
		if (o->state[key] == OVERRIDE_GIVEN && wrong)
			return err_set(why, ERR_INVALID, "%s: %s", rows[key].path, wrong);
	}
	return check_lowered(o, document, why);
}

void
override_merge(struct override_set *into, const struct override_set *change)
{
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++) {
		if (change->state[key] == OVERRIDE_ABSENT)
			continue;
		bool given = change->state[key] == OVERRIDE_GIVEN;
		into->state[key] = given ? OVERRIDE_GIVEN : OVERRIDE_ABSENT;
		into->value[key] = given ? change->value[key] : 0;
	}
}

static void
set_value(struct job_terms *t, enum override_key key, double v)
{
	switch (key) {
	case OVERRIDE_SHARE:
		t->share = (uint32_t)v;
		break;
	case OVERRIDE_PRIORITY:
		t->priority = (int64_t)v;
		break;
	case OVERRIDE_ROUND_DEADLINE:
		t->round.deadline_s = v;
		break;
	case OVERRIDE_ROUND_GRACE:
		t->round.grace_s = v;
		break;
	case OVERRIDE_ROUND_TASK_TIMEOUT:
		t->round.task_timeout_s = v;
		break;
	case OVERRIDE_ROUND_CONCURRENCY:
		t->round.concurrency = (uint32_t)v;
		break;
	case OVERRIDE_STOP_ROUNDS:
		t->stop.rounds = (uint64_t)v;
		break;
	case OVERRIDE_STOP_REPORTS:
		t->stop.reports = (uint64_t)v;
		break;
	case OVERRIDE_STOP_SECONDS:
		t->stop.seconds = v;
		break;
	case OVERRIDE_EVALUATE_DEADLINE:
		t->evaluate_deadline_s = v;
		break;
	case OVERRIDE_ROUND_GOAL:
		t->round.goal = (uint32_t)v;
		break;
	case OVERRIDE_ROUND_QUORUM:
		t->round.quorum = (uint32_t)v;
		break;
	case OVERRIDE_KEYS:
		break;
	}
}

void
override_terms(struct job_terms *out, const struct job_spec *document, const struct override_set *o)
{
	*out = (struct job_terms){.priority = document->priority,
	    .share = document->share,
	    .round = document->round,
	    .stop = document->stop,
	    .evaluate_deadline_s = document->recipe.evaluate_deadline_s};
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		if (o->state[key] == OVERRIDE_GIVEN)
			set_value(out, key, o->value[key]);
	if (out->round.quorum > out->round.goal)
		out->round.quorum = out->round.goal;
}

double
override_value(const struct job_terms *t, enum override_key key)
{
	const double values[OVERRIDE_KEYS] = {
	    [OVERRIDE_SHARE] = t->share,
	    [OVERRIDE_PRIORITY] = (double)t->priority,
	    [OVERRIDE_ROUND_DEADLINE] = t->round.deadline_s,
	    [OVERRIDE_ROUND_GRACE] = t->round.grace_s,
	    [OVERRIDE_ROUND_TASK_TIMEOUT] = t->round.task_timeout_s,
	    [OVERRIDE_ROUND_CONCURRENCY] = t->round.concurrency,
	    [OVERRIDE_STOP_ROUNDS] = (double)t->stop.rounds,
	    [OVERRIDE_STOP_REPORTS] = (double)t->stop.reports,
	    [OVERRIDE_STOP_SECONDS] = t->stop.seconds,
	    [OVERRIDE_EVALUATE_DEADLINE] = t->evaluate_deadline_s,
	    [OVERRIDE_ROUND_GOAL] = t->round.goal,
	    [OVERRIDE_ROUND_QUORUM] = t->round.quorum,
	};

	return values[key];
}
