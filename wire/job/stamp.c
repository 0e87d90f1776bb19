#include <string.h>

#include "job.h"
#include "job_inside.h"
#include "json.h"

/* A step is worth less the more there were before it: with factors of 4 and more rounds of unlike speeds spoil what those before them
 * learned, with 2 none did (docs/simulate.md). */
#define NORMALISE_MAX_NEW 2

static const char normalise_path[] = "aggregate.normalise";
static const char most_path[] = "aggregate.normalise_max";

static const struct job_stamp nothing = {.normalise_max = -1};

/* In buffered rounds the fast come again and again, and one delta of a slow device that is multiplied weighs among few: rounds of unlike data
 * spoil what was learned with any factor, and learn more without (docs/simulate.md). */
static bool
leaves_deltas(const struct job_spec *job)
{
	return job->round.mode == ROUND_MODE_BUFFERED && !job->aggregate.normalise_given;
}

struct job_stamp
job_stamp_new(const struct job_spec *job)
{
	const struct aggregate_spec *a = &job->aggregate;
	struct job_stamp stamp = nothing;

	if (!a->normalise || a->normalise_max >= 0)
		return stamp;
	stamp.normalise_off = leaves_deltas(job);
	if (!stamp.normalise_off)
		stamp.normalise_max = NORMALISE_MAX_NEW;
	return stamp;
}

void
job_stamp_apply(struct job_spec *job, const struct job_stamp *stamp)
{
	struct aggregate_spec *a = &job->aggregate;

	if (stamp->normalise_off && !a->normalise_given)
		a->normalise = false;
	if (stamp->normalise_max >= 0 && a->normalise_max < 0)
		a->normalise_max = stamp->normalise_max;
}

bool
job_stamp_is_empty(const struct job_stamp *stamp)
{
	return job_stamp_equals(stamp, &nothing);
}

bool
job_stamp_equals(const struct job_stamp *a, const struct job_stamp *b)
{
	return a->normalise_off == b->normalise_off && a->normalise_max == b->normalise_max;
}

struct json *
job_stamp_json(const struct job_stamp *stamp)
{
	struct json *o = json_object();

	if (stamp->normalise_off)
		json_add_bool(o, normalise_path, false);
	if (stamp->normalise_max >= 0)
		json_add_double(o, most_path, stamp->normalise_max);
	return o;
}

bool
job_factor_is_bound(double most)
{
	return most <= JOB_FACTOR_MAX && (most <= 0 || most >= 1);
}

static enum err
read_default(struct job_stamp *out, const struct json *v, struct why *why)
{
	bool on = true;
	double most;

	if (strcmp(json_key(v), normalise_path) == 0) {
		if (!json_bool(v, &on) || on)
			return err_set(why, ERR_INVALID, "%s: not false", normalise_path);
		out->normalise_off = true;
		return ERR_OK;
	}
	if (strcmp(json_key(v), most_path) != 0)
		return err_set(why, ERR_UNSUPPORTED,
		    "\"%.40s\": not a default that this version knows", json_key(v));
	if (!json_double(v, &most) || most < 0 || !job_factor_is_bound(most))
		return err_set(why, ERR_INVALID, "%s: not a factor", most_path);
	out->normalise_max = most;
	return ERR_OK;
}

enum err
job_stamp_read(struct job_stamp *out, const struct json *from, struct why *why)
{
	struct job_stamp stamp = nothing;
	enum err e = ERR_OK;

	*out = nothing;
	if (from && json_kind(from) != JSON_OBJECT)
		return err_set(why, ERR_INVALID, "defaults: not an object");
	for (const struct json *v = from ? json_first(from) : NULL; v && !e; v = json_next(v))
		e = read_default(&stamp, v, why);
	if (!e)
		*out = stamp;
	return e;
}

enum err
job_stamp_parse(struct job_stamp *out, const char *text, size_t len, struct why *why)
{
	struct json *doc = NULL;

	*out = nothing;
	if (len > JOB_STAMP_TEXT_MAX)
		return err_set(why, ERR_LIMIT, "larger than %u bytes", JOB_STAMP_TEXT_MAX);
	enum err e = json_parse(&doc, text, len, why);
	if (!e)
		e = job_stamp_read(out, doc, why);
	json_free(doc);
	return e;
}
