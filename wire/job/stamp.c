#include <string.h>

#include "job_inside.h"

/* A step is worth less the more there were before it: with factors of 4 and more rounds of unlike speeds spoil what those before them
 * learned, with 2 none did (docs/simulate.md). */
#define NORMALISE_MAX_NEW 2

static const char normalise_path[] = "aggregate.normalise_max";

struct job_stamp
job_stamp_new(const struct job_spec *job)
{
	const struct aggregate_spec *a = &job->aggregate;

	return (struct job_stamp){
	    .normalise_max = a->normalise && a->normalise_max < 0 ? NORMALISE_MAX_NEW : -1};
}

void
job_stamp_apply(struct job_spec *job, const struct job_stamp *stamp)
{
	if (stamp->normalise_max >= 0 && job->aggregate.normalise_max < 0)
		job->aggregate.normalise_max = stamp->normalise_max;
}

bool
job_stamp_is_empty(const struct job_stamp *stamp)
{
	return stamp->normalise_max < 0;
}

bool
job_stamp_equals(const struct job_stamp *a, const struct job_stamp *b)
{
	return a->normalise_max == b->normalise_max;
}

struct json *
job_stamp_json(const struct job_stamp *stamp)
{
	struct json *o = json_object();

	if (stamp->normalise_max >= 0)
		json_add_double(o, normalise_path, stamp->normalise_max);
	return o;
}

bool
job_factor_is_bound(double most)
{
	return most <= JOB_FACTOR_MAX && (most <= 0 || most >= 1);
}

enum err
job_stamp_read(struct job_stamp *out, const struct json *from, struct why *why)
{
	double most = -1;

	*out = (struct job_stamp){.normalise_max = -1};
	if (from && json_kind(from) != JSON_OBJECT)
		return err_set(why, ERR_INVALID, "defaults: not an object");
	for (const struct json *v = from ? json_first(from) : NULL; v; v = json_next(v)) {
		if (strcmp(json_key(v), normalise_path) != 0)
			return err_set(why, ERR_UNSUPPORTED,
			    "\"%.40s\": not a default that this version knows", json_key(v));
		if (!json_double(v, &most) || most < 0 || !job_factor_is_bound(most))
			return err_set(why, ERR_INVALID, "%s: not a factor", normalise_path);
	}
	out->normalise_max = most;
	return ERR_OK;
}

enum err
job_stamp_parse(struct job_stamp *out, const char *text, size_t len, struct why *why)
{
	struct json *doc = NULL;

	*out = (struct job_stamp){.normalise_max = -1};
	if (len > JOB_STAMP_TEXT_MAX)
		return err_set(why, ERR_LIMIT, "larger than %u bytes", JOB_STAMP_TEXT_MAX);
	enum err e = json_parse(&doc, text, len, why);
	if (!e)
		e = job_stamp_read(out, doc, why);
	json_free(doc);
	return e;
}
