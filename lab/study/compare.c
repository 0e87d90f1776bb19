#include "compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axis.h"
#include "cmd.h"
#include "json.h"
#include "print.h"
#include "rounds.h"
#include "screen.h"
#include "session.h"
#include "shown.h"

#define PLACES 10 /* lines of the table of values, or a few more */

struct side {
	struct json *job;
	struct series by[SCALARS_MEANT_MAX];
	struct cmd_rounds_best best;
	char label[CMD_PRINT_CELL_MAX];
};

struct compare {
	struct cmd_admin a;
	const char *metric;
	enum series_axis axis;
	bool plot;
	struct cmd_rounds_monitor monitor; /* what is compared */
	char tags[SCALARS_MEANT_MAX][SCALARS_TAG_MAX];
	size_t tags_count, chosen;
	struct side sides[PLOT_LINES_MAX];
	size_t count;
};

static const struct series *
curve(const struct compare *c, size_t side)
{
	return &c->sides[side].by[c->chosen];
}

/* Jobs of one name are told apart by the beginning of the id. */
static void
label(struct compare *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct side *s = &c->sides[i];
		const char *name = json_string(json_get(s->job, "name"));
		bool alone = name != NULL;
		for (size_t k = 0; k < c->count && alone; k++) {
			const char *other = json_string(json_get(c->sides[k].job, "name"));
			alone = k == i || !other || strcmp(other, name) != 0;
		}
		snprintf(s->label, sizeof(s->label), "%.40s%s%.12s", name ? name : "",
		    alone ? "" : " ", alone ? "" : json_string(json_get(s->job, "job")));
		shown_clean(s->label);
	}
}

static enum err
fetch_job(struct compare *c, const char *word, struct why *why)
{
	struct side *s = &c->sides[c->count];
	enum err e = cmd_rounds_job(&c->a, word, &s->job, why);

	if (e)
		return e;
	c->count++;
	for (size_t i = 0; i < SCALARS_MEANT_MAX; i++)
		series_init(&s->by[i], "", c->axis);
	return ERR_OK;
}

/* What is compared: --metric, else the first job's monitor. */
static enum err
choose(struct compare *c, struct why *why)
{
	enum err e = cmd_rounds_monitor(&c->a, c->sides[0].job, &c->monitor, why);

	if (e)
		return e;
	/* Another job may have the other of two tags, "eval" and "train". */
	char metric[SCALARS_TAG_MAX];
	bool own = strncmp(c->monitor.tag, "metrics/", 8) == 0;
	size_t len = own ? strlen(c->monitor.tag) : strcspn(c->monitor.tag, "/");
	snprintf(metric, sizeof(metric), "%.*s", (int)len, c->monitor.tag);
	c->tags_count = scalars_meant(c->metric ? c->metric : metric, c->tags);
	return ERR_OK;
}

static size_t
sides_with(const struct compare *c, size_t tag)
{
	size_t n = 0;

	for (size_t i = 0; i < c->count; i++)
		n += series_best(&c->sides[i].by[tag], true) >= 0;
	return n;
}

/* Of the tags that are meant the one that most jobs have. */
static void
settle(struct compare *c)
{
	for (size_t k = 1; k < c->tags_count; k++)
		if (sides_with(c, k) > sides_with(c, c->chosen))
			c->chosen = k;
}

static enum err
fetch(struct compare *c, struct why *why)
{
	enum err e = choose(c, why);

	for (size_t i = 0; i < c->count && !e; i++) {
		for (size_t k = 0; k < c->tags_count; k++)
			series_init(&c->sides[i].by[k], c->tags[k], c->axis);
		e = cmd_rounds_series(
		    &c->a, c->sides[i].job, 1, c->sides[i].by, c->tags_count, why);
	}
	if (e)
		return e;
	settle(c);
	const char *tag = c->tags[c->chosen];
	int better = strcmp(tag, c->monitor.tag) != 0 ? scalars_better(tag)
	    : c->monitor.largest		      ? 1
						      : -1;
	for (size_t i = 0; i < c->count; i++) {
		const struct series *s = curve(c, i);
		ptrdiff_t best = series_best(s, better > 0);
		if (best >= 0 && better != 0)
			c->sides[i].best = (struct cmd_rounds_best){.known = true,
			    .round =
				cmd_rounds_measured(c->sides[i].job, tag, (uint64_t)s->round[best]),
			    .value = s->y[best]};
	}
	return ERR_OK;
}

static double
last_value(const struct series *s)
{
	double y;

	return s->count > 0 && series_at(s, s->x[s->count - 1], &y) ? y : NAN;
}

static void
cell(struct cmd_table *t, double v)
{
	char number[CMD_PRINT_NUMBER_MAX];

	cmd_print_cell(t, "%s", isnan(v) ? "-" : cmd_print_number(number, v));
}

static void
print_jobs(const struct compare *c)
{
	static const char *const heads[] = {
	    "JOB", "NAME", "STATE", "ROUNDS", "REPORTS", "LAST", "BEST", "AT ROUND"};
	struct cmd_table t;

	cmd_print_line("%s", c->tags[c->chosen]);
	cmd_print_start(&t, heads, 8);
	for (size_t i = 0; i < c->count; i++) {
		const struct side *s = &c->sides[i];
		cmd_print_short_id(&t, s->job, "job");
		cmd_print_text(&t, s->job, "name");
		cmd_print_text(&t, s->job, "state");
		cmd_print_count(&t, s->job, "rounds_committed");
		cmd_print_cell(&t, "%.0f", curve(c, i)->reports);
		cell(&t, last_value(curve(c, i)));
		cell(&t, s->best.known ? s->best.value : NAN);
		if (s->best.known)
			cmd_print_cell(&t, "%" PRIu64, s->best.round);
		else
			cmd_print_cell(&t, "-");
	}
	cmd_print_end(&t);
}

/* How far the curves reach along x; false without a point. */
static bool
reach(const struct compare *c, double *low, double *high)
{
	bool any = false;

	for (size_t i = 0; i < c->count; i++) {
		const struct series *s = curve(c, i);
		if (s->count == 0)
			continue;
		*low = any ? fmin(*low, s->x[0]) : s->x[0];
		*high = any ? fmax(*high, s->x[s->count - 1]) : s->x[s->count - 1];
		any = true;
	}
	return any;
}

static void
print_place(const struct compare *c, struct cmd_table *t, double x, double unit, double step)
{
	char text[AXIS_LABEL_MAX];
	double y;

	axis_label(text, x / unit, step);
	cmd_print_cell(t, "%s", text);
	for (size_t i = 0; i < c->count; i++) {
		const struct series *s = curve(c, i);
		bool there = s->count > 0 && x <= s->x[s->count - 1] && series_at(s, x, &y);
		cell(t, there ? y : NAN);
	}
}

/* Each job's newest value at some places along x; "-" where it has not come so far. */
static void
print_values(const struct compare *c)
{
	const char *heads[PLOT_LINES_MAX + 1];
	const char *unit_name = series_axis_name(c->axis);
	struct cmd_table t;
	double low = 0, high = 0, unit = 1;

	if (!reach(c, &low, &high))
		return;
	if (c->axis == SERIES_TIME)
		unit = axis_time_unit(high, &unit_name);
	heads[0] = unit_name;
	for (size_t i = 0; i < c->count; i++)
		heads[i + 1] = c->sides[i].label;
	printf("\n");
	cmd_print_start(&t, heads, c->count + 1);
	struct axis axis = axis_within(low / unit, high / unit, PLACES, c->axis != SERIES_TIME);
	double step = axis.step;
	double first = ceil(axis.low / step), last = axis.high - step * 1e-9;
	for (unsigned i = 0; i <= PLACES && (first + i) * step < last; i++)
		print_place(c, &t, (first + i) * step * unit, unit, step);
	print_place(c, &t, high, unit, step);
	cmd_print_end(&t);
}

static enum err
print_plot(const struct compare *c, struct why *why)
{
	struct plot_line lines[PLOT_LINES_MAX];
	struct plot plot = {.title = c->tags[c->chosen],
	    .x_name = series_axis_name(c->axis),
	    .x_unit = 1,
	    .lines = lines,
	    .count = c->count};
	double low = 0, high = 0;

	if (c->axis == SERIES_TIME && reach(c, &low, &high))
		plot.x_unit = axis_time_unit(high, &plot.x_name);
	for (size_t i = 0; i < c->count; i++) {
		const struct series *s = curve(c, i);
		lines[i] = (struct plot_line){c->sides[i].label, s->x, s->y, s->count};
	}
	printf("\n");
	cmd_screen(&plot, 1);
	return cmd_screen_plot(&plot, why);
}

static struct json *
points_json(const struct series *s)
{
	struct json *points = json_array();

	for (size_t i = 0; i < s->count; i++) {
		struct json *point = json_array();
		json_push(point, json_new_double(s->x[i]));
		json_push(point, json_new_double(s->y[i]));
		json_push(points, point);
	}
	return points;
}

static void
print_json(const struct compare *c)
{
	struct json *doc = json_object(), *jobs = json_array();

	json_add_string(doc, "x", series_axis_name(c->axis));
	json_add_string(doc, "metric", c->tags[c->chosen]);
	for (size_t i = 0; i < c->count; i++) {
		const struct side *s = &c->sides[i];
		struct json *o = json_object(), *best = NULL;
		json_add(o, "job", json_copy(json_get(s->job, "job")));
		json_add(o, "name", json_copy(json_get(s->job, "name")));
		json_add(o, "state", json_copy(json_get(s->job, "state")));
		if (s->best.known) {
			best = json_object();
			json_add_u64(best, "round", s->best.round);
			json_add_double(best, "value", s->best.value);
			json_add(o, "best", best);
		} else {
			json_add_null(o, "best");
		}
		json_add(o, "points", points_json(curve(c, i)));
		json_push(jobs, o);
	}
	json_add(doc, "jobs", jobs);
	cmd_print_json(doc);
	json_free(doc);
}

static enum err
compare(struct compare *c, const struct option_words *words, struct why *why)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < words->count && !e; i++)
		e = fetch_job(c, words->words[i], why);
	if (!e)
		e = fetch(c, why);
	if (e)
		return e;
	if (c->a.json) {
		print_json(c);
		return ERR_OK;
	}
	label(c);
	print_jobs(c);
	print_values(c);
	return c->plot ? print_plot(c, why) : ERR_OK;
}

static void
deinit(struct compare *c)
{
	for (size_t i = 0; i < c->count; i++) {
		for (size_t k = 0; k < SCALARS_MEANT_MAX; k++)
			series_deinit(&c->sides[i].by[k]);
		json_free(c->sides[i].job);
	}
}

int
cmd_compare_main(int argc, char **argv)
{
	struct compare c = {.count = 0};
	const char *axis = "round";
	const struct option_entry table[] = {
	    {"x", 'x', "round|reports|time", "what the curves are laid along (default: round)",
		&axis, NULL},
	    {"metric", 'm', "NAME",
		"loss, accuracy, metrics.NAME, ... (default: the first job's monitor)", &c.metric,
		NULL},
	    {"plot", 'p', NULL, "curves below the tables", NULL, &c.plot},
	    CMD_ADMIN_OPTIONS(&c.a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "job compare JOB... [--x round|reports|time] [--metric NAME] [--plot] " CMD_ADMIN_USAGE,
	    "Lays the curves of up to 8 jobs side by side. `time` counts from the opening of each "
	    "job's first round.",
	    1, PLOT_LINES_MAX};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (!series_axis_find(axis, &c.axis) || (c.plot && c.a.json)) {
		cmd_print_error("%s",
		    c.plot && c.a.json ? "--plot goes without --json"
				       : "--x wants round, reports or time");
		return CMD_USAGE;
	}
	enum err e = cmd_admin_open(&c.a, &why);
	if (!e)
		e = compare(&c, &words, &why);
	deinit(&c);
	return cmd_admin_end(&c.a, e, &why);
}
