#include "rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "session.h"

#define PAGE 1000

enum err
cmd_rounds_job(struct cmd_admin *a, const char *word, struct json **job, struct why *why)
{
	char id[CMD_FIND_ID], path[CMD_FIND_ID + 16];
	enum err e = cmd_find(a, CMD_FIND_JOB, word, id, why);

	*job = NULL;
	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s", id);
	e = cmd_admin_call(a, "GET", path, NULL, job, why);
	const char *own = json_string(json_get(*job, "job"));
	if (!e && (!own || strlen(own) != 32 || strspn(own, "0123456789abcdef") != 32))
		e = err_set(why, ERR_INVALID, "what came is no job");
	if (e) {
		json_free(*job);
		*job = NULL;
	}
	return e;
}

/* Visits a page; *next moves on, and stays where there was nothing more. */
static enum err
visit_page(const struct json *rounds, uint64_t *next, cmd_rounds_visit *visit, void *context,
    struct why *why)
{
	uint64_t number;

	for (const struct json *r = json_first(rounds); r; r = json_next(r)) {
		if (!scalars_ended(r))
			return ERR_OK;
		if (!json_u64(json_get(r, "round"), &number) || number < *next)
			return err_set(why, ERR_INVALID, "what came is no round");
		enum err e = visit(context, r, why);
		if (e)
			return e;
		*next = number + 1;
	}
	return ERR_OK;
}

enum err
cmd_rounds_each(struct cmd_admin *a, const struct json *job, uint64_t from, cmd_rounds_visit *visit,
    void *context, struct why *why)
{
	const char *id = json_string(json_get(job, "job"));
	uint64_t next = from, before;
	char path[128];
	enum err e;

	do {
		struct json *doc = NULL;
		before = next;
		snprintf(path, sizeof(path), "/v1/jobs/%.32s/rounds?from=%" PRIu64 "&limit=%d",
		    id ? id : "", next, PAGE);
		e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
		if (!e)
			e = visit_page(json_get(doc, "rounds"), &next, visit, context, why);
		json_free(doc);
	} while (!e && next - before >= PAGE);
	return e;
}

struct target {
	struct series *series;
	size_t count;
};

static enum err
add(void *context, const struct json *round, struct why *why)
{
	const struct target *t = context;
	enum err e = ERR_OK;

	for (size_t i = 0; i < t->count && !e; i++)
		e = series_add(&t->series[i], round, why);
	return e;
}

enum err
cmd_rounds_series(struct cmd_admin *a, const struct json *job, uint64_t from, struct series *series,
    size_t count, struct why *why)
{
	struct target t = {series, count};

	return cmd_rounds_each(a, job, from, add, &t, why);
}

enum { CHOICES_MAX = 4 };

/* What a job may be judged by, the best first. An evaluation of whatever kind goes before the training's own figures. */
static size_t
choices(const struct json *job, struct cmd_rounds_monitor out[CHOICES_MAX])
{
	static const struct cmd_rounds_monitor untold[CHOICES_MAX] = {
	    {"accuracy/eval", true},
	    {"loss/eval", false},
	    {"accuracy/train", true},
	    {"loss/train", false},
	};
	const struct json *monitor = json_get(job, "monitor");
	const char *metric = json_string(json_get(monitor, "metric"));
	const char *mode = json_string(json_get(monitor, "mode"));
	char tags[SCALARS_MEANT_MAX][SCALARS_TAG_MAX];

	if (!metric || !mode) {
		memcpy(out, untold, sizeof(untold));
		return CHOICES_MAX;
	}
	size_t n = scalars_meant(metric, tags);
	for (size_t i = 0; i < n; i++) {
		memcpy(out[i].tag, tags[i], sizeof(tags[i]));
		out[i].largest = strcmp(mode, "max") == 0;
	}
	return n;
}

enum err
cmd_rounds_monitor(
    struct cmd_admin *a, const struct json *job, struct cmd_rounds_monitor *out, struct why *why)
{
	struct cmd_rounds_monitor all[CHOICES_MAX];
	struct series series[CHOICES_MAX];
	size_t n = choices(job, all), chosen = 0;

	for (size_t i = 0; i < n; i++)
		series_init(&series[i], all[i].tag, SERIES_ROUND);
	enum err e = cmd_rounds_series(a, job, 1, series, n, why);
	while (chosen < n && series_best(&series[chosen], true) < 0)
		chosen++;
	*out = all[chosen < n ? chosen : 0];
	for (size_t i = 0; i < n; i++)
		series_deinit(&series[i]);
	return e;
}

static bool
told_best(const struct json *job, struct cmd_rounds_best *out)
{
	const struct json *best = json_get(job, "best");
	const char *model = json_string(json_get(best, "model"));

	if (!json_u64(json_get(best, "round"), &out->round) ||
	    !json_double(json_get(best, "value"), &out->value))
		return false;
	snprintf(out->model, sizeof(out->model), "%s", model ? model : "");
	out->known = true;
	return true;
}

uint64_t
cmd_rounds_measured(const struct json *job, const char *tag, uint64_t round)
{
	static const char own[] = "metrics/", train[] = "/train";
	const struct json *document = json_get(job, "document");
	const char *by = json_string(json_get(json_get(document, "evaluate"), "by"));
	const char *mode = json_string(json_get(json_get(document, "round"), "mode"));
	size_t len = strlen(tag);
	bool trained = len >= strlen(train) && strcmp(tag + len - strlen(train), train) == 0;
	bool devices = by && strcmp(by, "devices") == 0, program = by && strcmp(by, "program") == 0;
	bool base = (strncmp(tag, own, strlen(own)) == 0 && !program) || (devices && !trained);

	/* Which base a buffer measured is not told. */
	return base && round > 0 && (!mode || strcmp(mode, "buffered") != 0) ? round - 1 : round;
}

enum err
cmd_rounds_best(struct cmd_admin *a, const struct json *job,
    const struct cmd_rounds_monitor *monitor, struct cmd_rounds_best *out, struct why *why)
{
	struct series s;

	*out = (struct cmd_rounds_best){.known = false};
	if (told_best(job, out))
		return ERR_OK;
	series_init(&s, monitor->tag, SERIES_ROUND);
	enum err e = cmd_rounds_series(a, job, 1, &s, 1, why);
	ptrdiff_t best = series_best(&s, monitor->largest);
	if (!e && best >= 0) {
		out->round = cmd_rounds_measured(job, monitor->tag, (uint64_t)s.round[best]);
		out->value = s.y[best];
		out->known = true;
	}
	series_deinit(&s);
	return e;
}
