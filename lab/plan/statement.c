#include "statement.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "print.h"
#include "profile.h"
#include "tensor.h"
#include "training.h"

#define LINES_SHOWN 16 /* of what a coordinator has to say */

/* --- as JSON */

static struct json *
network_json(const struct costs *c)
{
	struct json *v = json_object();

	json_add_u64(v, "weights", c->weights);
	json_add_u64(v, "optimizer", c->optimizer);
	json_add_u64(v, "gradient", c->gradient);
	json_add_u64(v, "contexts", c->contexts);
	json_add_u64(v, "shared", c->shared);
	json_add_u64(v, "work", c->work);
	return v;
}

static struct json *
footprint_json(const struct footprint *f, uint64_t of)
{
	struct json *v = json_object();

	json_add_u64(v, "of_examples", of);
	json_add_u64(v, "process", f->process);
	json_add_u64(v, "examples", f->examples);
	json_add_u64(v, "weights", f->weights);
	json_add_u64(v, "training", f->training);
	json_add(v, "network", network_json(&f->costs));
	json_add_u64(v, "data", f->data);
	json_add_u64(v, "threads", f->threads);
	json_add_u64(v, "variates", f->variates);
	json_add_u64(v, "delta", f->delta);
	json_add_bool(v, "program", f->program);
	json_add_u64(v, "peak", f->peak);
	return v;
}

static struct json *
task_bytes_json(const struct footprint_bytes *b)
{
	struct json *v = json_object();

	json_add_u64(v, "model", b->model);
	json_add_u64(v, "delta", b->delta);
	return v;
}

static struct json *
bytes_json(const struct plan_estimate *e)
{
	const struct plan_playout *c = &e->playout;
	struct json *v = task_bytes_json(&e->bytes);
	double played = c->played > 0 ? (double)c->played : NAN;

	if (e->difference > 0)
		json_add_u64(v, "difference", e->difference);
	else
		json_add_null(v, "difference");
	json_add_double(v, "round_down", (double)c->bytes_down / played);
	json_add_double(v, "round_up", (double)c->bytes_up / played);
	json_add_double(v, "job_down", (double)c->bytes_down / played * (double)c->rounds);
	json_add_double(v, "job_up", (double)c->bytes_up / played * (double)c->rounds);
	return v;
}

/* NaN is null: nothing is known of times. */
static struct json *
rounds_json(const struct plan_estimate *e)
{
	static const struct {
		const char *key;
		double share;
	} quantiles[] = {{"p10", 0.1}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"longest", 1}};
	const struct plan_playout *c = &e->playout;
	struct json *v = json_object();
	double played = c->played > 0 ? (double)c->played : NAN;
	double known = e->has_times ? 1 : NAN, more = e->between_seconds;
	double whole = known * (double)c->rounds / played;

	json_add_u64(v, "rounds", c->rounds);
	json_add_u64(v, "played", c->played);
	json_add_double(v, "mean", known * (c->seconds / played + more));
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(*quantiles); i++)
		json_add_double(v, quantiles[i].key,
		    known * (plan_playout_quantile(c, quantiles[i].share) + more));
	json_add_double(v, "job", whole * (c->seconds + more * played));
	json_add_double(v, "device_seconds", whole * c->device_seconds);
	json_add_double(v, "wasted_seconds", whole * c->wasted_seconds);
	return v;
}

/* Whose speeds the times are made of. */
static struct json *
measured_json(const struct plan_known *k)
{
	struct json *list = json_array();

	for (size_t i = 0; i < PLAN_MEASURED_MAX && k->measured_in[i].devices > 0; i++) {
		struct json *v = json_object();
		json_add_string(v, "job", k->measured_in[i].job);
		json_add_string(v, "name", k->measured_in[i].name);
		json_add_u64(v, "devices", k->measured_in[i].devices);
		json_push(list, v);
	}
	return list;
}

static struct json *
devices_json(const struct plan_estimate *e)
{
	struct json *v = json_object();

	json_add_bool(v, "known", e->is_known);
	json_add_bool(v, "assumed", e->assumed);
	json_add_u64(v, "count", e->devices);
	if (e->is_known) {
		json_add_u64(v, "active", e->known.devices);
		json_add_u64(v, "with_data", e->known.with_data);
		json_add_u64(v, "max_examples", e->job.aggregate.max_examples);
		json_add_u64(v, "drawn", e->known.drawn);
		json_add_u64(v, "too_many_examples", e->known.too_many);
		json_add_u64(v, "with_memory", e->known.with_memory);
		json_add_u64(v, "measured", e->known.measured);
		json_add(v, "measured_in", measured_json(&e->known));
	}
	json_add_double(v, "reached", e->playout.played > 0 ? e->playout.reports_share : NAN);
	return v;
}

static struct json *
coordinator_json(const struct plan_estimate *e)
{
	struct json *v = json_object();
	bool played = e->playout.played > 0;

	json_add_u64(v, "models", e->disk.models_bytes);
	json_add_u64(v, "spool", e->disk.spool_bytes);
	json_add_u64(v, "deltas", e->disk.deltas_bytes);
	json_add_u64(v, "database", e->disk.database_bytes);
	json_add_bool(v, "fits", e->disk_fits);
	json_add_double(v, "cpu_round", played ? e->cpu.round : NAN);
	json_add_double(v, "cpu_job", played && e->playout.rounds > 0 ? e->cpu.job : NAN);
	return v;
}

static bool
is_problem(const struct plan_estimate *e, const char *text)
{
	for (size_t i = 0; text && i < e->problem_count; i++)
		if (strcmp(e->problems[i], text) == 0)
			return true;
	return false;
}

/* The coordinator's, but for what is said of the job as a problem already, in the same words. */
static struct json *
warnings_json(const struct plan_estimate *e)
{
	struct json *list = json_array();

	for (const struct json *w = json_first(e->warnings); w; w = json_next(w))
		if (!is_problem(e, json_string(w)))
			json_push(list, json_copy(w));
	return list;
}

struct json *
plan_statement(const struct plan_estimate *e)
{
	struct json *v = json_object(), *problems = json_array();

	json_add_string(v, "name", e->job.name);
	json_add_bool(v, "runs", e->problem_count == 0);
	json_add_bool(v, "exists", e->exists);
	for (size_t i = 0; i < e->problem_count; i++)
		json_push(problems, json_new_string(e->problems[i]));
	json_add(v, "problems", problems);
	json_add(v, "warnings", warnings_json(e));
	json_add_u64(v, "parameters", e->parameters);
	json_add(v, "devices", devices_json(e));
	json_add(v, "bytes", bytes_json(e));
	json_add(v, "memory", footprint_json(&e->footprint, e->examples));
	json_add(v, "coordinator", coordinator_json(e));
	json_add(v, "seconds", rounds_json(e));
	return v;
}

/* --- as text */

static void
bytes(char out[16], const struct json *o, const char *key)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v;
	size_t unit = 0;

	if (!json_double(json_get(o, key), &v)) {
		snprintf(out, 16, "-");
		return;
	}
	for (; v >= 1024 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
		v /= 1024;
	snprintf(out, 16, unit ? "%.1f %s" : "%.0f %s", v, units[unit]);
}

static void
seconds(char out[16], const struct json *o, const char *key)
{
	double v;

	if (!json_double(json_get(o, key), &v))
		snprintf(out, 16, "-");
	else if (v < 120)
		snprintf(out, 16, v < 10 ? "%.2f s" : "%.0f s", v);
	else if (v < 7200)
		snprintf(out, 16, "%.1f min", v / 60);
	else if (v < 172800)
		snprintf(out, 16, "%.1f h", v / 3600);
	else
		snprintf(out, 16, "%.1f days", v / 86400);
}

static unsigned long long
count(const struct json *o, const char *key)
{
	uint64_t v = 0;

	(void)json_u64(json_get(o, key), &v);
	return v;
}

static void
print_list(const struct json *list, const char *word)
{
	size_t shown = 0;

	for (const struct json *v = json_first(list); v && shown < LINES_SHOWN; v = json_next(v)) {
		const char *text = json_string(v);
		if (text) {
			cmd_print_line("%-21s %s", word, text);
			shown++;
		}
	}
}

static void
print_bytes(const struct json *b)
{
	char down[16], up[16];

	cmd_print_line("%-21s %12s %12s", "", "down", "up");
	bytes(down, b, "model");
	bytes(up, b, "delta");
	cmd_print_line("%-21s %12s %12s", "a device, a round", down, up);
	if (count(b, "difference") > 0) {
		bytes(down, b, "difference");
		cmd_print_line("%-21s %12s %12s", "  that held the last", down, "");
	}
	bytes(down, b, "round_down");
	bytes(up, b, "round_up");
	cmd_print_line("%-21s %12s %12s", "a round", down, up);
	bytes(down, b, "job_down");
	bytes(up, b, "job_up");
	cmd_print_line("%-21s %12s %12s", "the job", down, up);
}

/* What the agent itself works on: the training, or what comes before and after it. */
static void
tell_training(char *out, size_t size, const struct json *f)
{
	char weights[16], training[16], delta[16], variates[16];
	bool program = false;

	(void)json_bool(json_get(f, "program"), &program);
	bytes(weights, f, "weights");
	bytes(training, f, "training");
	bytes(delta, f, "delta");
	bytes(variates, f, "variates");
	if (program)
		snprintf(out, size, "training by a program, the delta %s", delta);
	else
		snprintf(out, size,
		    "training %s, or before and after it weights %s twice%s%s or with the delta %s",
		    training, weights, count(f, "variates") > 0 ? " and variates " : "",
		    count(f, "variates") > 0 ? variates : "", delta);
}

static void
print_footprint(const struct json *f)
{
	char peak[16], process[16], examples[16], work[160];

	bytes(peak, f, "peak");
	bytes(process, f, "process");
	bytes(examples, f, "examples");
	tell_training(work, sizeof(work), f);
	cmd_print_line("%-21s %s: agent %s, %s%s%s", "a device's memory", peak, process, work,
	    count(f, "examples") > 0 ? ", examples " : "; its examples beside it",
	    count(f, "examples") > 0 ? examples : "");
}

static void
print_coordinator(const struct json *c)
{
	char models[16], spool[16], database[16], deltas[16], round[16], job[16];

	bytes(models, c, "models");
	bytes(spool, c, "spool");
	bytes(database, c, "database");
	bytes(deltas, c, "deltas");
	cmd_print_line("%-21s models %s, spool %s, database %s%s%s", "coordinator's disk", models,
	    spool, database, count(c, "deltas") > 0 ? ", kept deltas " : "",
	    count(c, "deltas") > 0 ? deltas : "");
	seconds(round, c, "cpu_round");
	seconds(job, c, "cpu_job");
	cmd_print_line("%-21s about %s a round, %s in all, evaluation not counted",
	    "  its processor", round, job);
}

static void
print_times(const struct json *s)
{
	double median;
	bool has_times = json_double(json_get(s, "p50"), &median);
	char p10[16], p50[16], p90[16], longest[16], job[16], work[16], waste[16];

	seconds(p10, s, "p10");
	seconds(p50, s, "p50");
	seconds(p90, s, "p90");
	seconds(longest, s, "longest");
	seconds(job, s, "job");
	seconds(work, s, "device_seconds");
	seconds(waste, s, "wasted_seconds");
	if (!has_times) {
		cmd_print_line(
		    "%-21s not known: no device was measured yet; --fleet tells what they are like",
		    "time");
		return;
	}
	cmd_print_line(
	    "%-21s p10 %s, p50 %s, p90 %s, longest %s", "a round's time", p10, p50, p90, longest);
	if (count(s, "rounds") == 0)
		cmd_print_line("%-21s not known: the job's end is no number of rounds, reports or "
			       "seconds",
		    "the job's");
	else
		cmd_print_line("%-21s %s for %llu rounds; devices work %s, %s of it for nothing",
		    "the job's", job, count(s, "rounds"), work, waste);
}

/* A network of another size trains at another speed. */
static void
print_speeds(const struct json *d)
{
	const struct json *jobs = json_get(d, "measured_in");
	const char *comma = "";
	bool assumed = false;

	(void)json_bool(json_get(d, "assumed"), &assumed);
	if (assumed)
		cmd_print_line(
		    "%-21s speeds assumed, of no device: %g examples a second, %g MB/s up, %g "
		    "MB/s down, %g ms; --fleet gives others",
		    "", FLEET_LIKE_SAMPLES_PER_S, FLEET_LIKE_UP_BYTES_PER_S / 1e6,
		    FLEET_LIKE_DOWN_BYTES_PER_S / 1e6, FLEET_LIKE_LATENCY_S * 1000);
	if (count(d, "measured") == 0)
		return;
	cmd_print_part("%-21s speeds as measured in ", "");
	for (const struct json *j = json_first(jobs); j; j = json_next(j), comma = ", ") {
		const char *name = json_string(json_get(j, "name")),
			   *id = json_string(json_get(j, "job"));
		cmd_print_part("%s%s (%llu)", comma,
		    name && *name ? name
			: id	  ? id
				  : "?",
		    count(j, "devices"));
	}
	if (json_count(jobs) == 0)
		cmd_print_part("the job that each worked for last");
	if (count(d, "measured") < count(d, "count"))
		cmd_print_part(", their median for the others");
	cmd_print_line("%s", "; another network has another: --fleet gives them by hand");
}

static void
print_devices(const struct json *d)
{
	double reached;
	bool known = false;

	(void)json_bool(json_get(d, "known"), &known);
	if (known)
		cmd_print_line("%-21s %llu of the %llu that the coordinator knows: %llu have the "
			       "data, %llu were measured",
		    "devices", count(d, "count"), count(d, "active"), count(d, "with_data"),
		    count(d, "measured"));
	else
		cmd_print_line("%-21s %llu", "devices", count(d, "count"));
	print_speeds(d);
	if (count(d, "drawn") + count(d, "too_many_examples") > 0)
		cmd_print_line(
		    "%-21s max_examples is %llu: %llu of them draw so many of theirs, %llu "
		    "with an older agent get no task",
		    "", count(d, "max_examples"), count(d, "drawn"), count(d, "too_many_examples"));
	if (json_double(json_get(d, "reached"), &reached))
		cmd_print_line("%-21s %.0f %% of them are in a model after %s", "", 100 * reached,
		    "the rounds that were played");
}

void
plan_statement_print(const struct json *sheet)
{
	const char *name = json_string(json_get(sheet, "name"));
	const struct json *problems = json_get(sheet, "problems");

	if (count(sheet, "parameters") > 0)
		cmd_print_line(
		    "%-21s %llu parameters", name ? name : "job", count(sheet, "parameters"));
	print_list(problems, "cannot run:");
	print_list(json_get(sheet, "warnings"), "note:");
	bool exists = false;
	if (json_bool(json_get(sheet, "exists"), &exists) && exists)
		cmd_print_line("%-21s %s",
		    "note:", "it is a job already; the disk is what its rounds to come will take");
	/* Of a job that cannot run for what it is alone, there is no more to say. */
	if (count(json_get(sheet, "memory"), "peak") == 0)
		return;
	print_devices(json_get(sheet, "devices"));
	print_bytes(json_get(sheet, "bytes"));
	print_footprint(json_get(sheet, "memory"));
	print_coordinator(json_get(sheet, "coordinator"));
	if (json_count(problems) == 0)
		print_times(json_get(sheet, "seconds"));
}

/* --- of one device */

static struct json *
layer_json(const struct costs_layer *l)
{
	struct json *v = json_object();

	json_add_string(v, "name", l->name);
	json_add_string(v, "type", net_spec_type_name(l->type));
	json_add_u64(v, "parameters", l->parameters);
	json_add_u64(v, "each", l->each);
	json_add_u64(v, "kept", l->kept);
	json_add_u64(v, "passing", l->passing);
	json_add_u64(v, "gradient", l->gradient);
	json_add_u64(v, "work", l->work);
	return v;
}

static struct json *
layers_json(const struct net *net)
{
	struct json *list = json_array();
	struct costs_layer l;

	for (size_t i = 0; net && i < costs_layers(net); i++) {
		costs_layer(net, i, &l);
		json_push(list, layer_json(&l));
	}
	return list;
}

/* What a piece of a batch may be for the memory that there is. */
static void
add_limit(struct json *v, const struct plan_task *t)
{
	struct json *piece = json_object();

	json_add_bool(v, "fits", t->limit == 0 || t->footprint.peak <= t->limit);
	if (t->limit == 0 || !t->net) {
		json_free(piece);
		json_add_null(v, "limit");
		json_add_null(v, "micro_batch");
		return;
	}
	json_add_u64(v, "limit", t->limit);
	if (t->proposal.micro_batch > 0)
		json_add_u64(piece, "proposed", t->proposal.micro_batch);
	else
		json_add_null(piece, "proposed");
	json_add_u64(piece, "peak", t->proposal.peak);
	json_add(v, "micro_batch", piece);
}

struct json *
plan_statement_task(const struct plan_task *t)
{
	struct json *v = json_object();
	uint64_t steps = training_steps(&t->recipe->local, t->examples);

	json_add(v, "memory", footprint_json(&t->footprint, t->examples));
	json_add_u64(v, "examples", t->examples);
	if (steps > 0)
		json_add_u64(v, "steps", steps);
	else
		json_add_null(v, "steps");
	json_add_u64(v, "parameters", t->table->elements);
	json_add(v, "bytes", task_bytes_json(&t->bytes));
	json_add(v, "layers", layers_json(t->net));
	add_limit(v, t);
	return v;
}

static void
print_layers(const struct json *layers)
{
	static const char *const heads[] = {
	    "LAYER", "TYPE", "PARAMETERS", "AN EXAMPLE", "KEPT", "PASSING", "GRADIENT", "WORK"};
	static const char *const keys[] = {
	    "parameters", "each", "kept", "passing", "gradient", "work"};
	struct cmd_table table;

	if (json_count(layers) == 0)
		return;
	cmd_print_start(&table, heads, sizeof(heads) / sizeof(*heads));
	for (const struct json *l = json_first(layers); l; l = json_next(l)) {
		cmd_print_text(&table, l, "name");
		cmd_print_text(&table, l, "type");
		for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			cmd_print_bytes(&table, l, keys[i]);
	}
	cmd_print_end(&table);
}

static void
print_network(const struct json *f)
{
	static const char *const keys[] = {
	    "weights", "optimizer", "gradient", "contexts", "shared", "work"};
	static const char *const words[] = {
	    "weights", "optimizer", "gradient", "kept", "shared", "workspace"};
	const struct json *network = json_get(f, "network");
	char text[16];

	cmd_print_part("%-21s ", "the network");
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		bytes(text, network, keys[i]);
		cmd_print_part("%s %s, ", words[i], text);
	}
	bytes(text, f, "data");
	cmd_print_line("batches %s; %llu thread%s", text, count(f, "threads"),
	    count(f, "threads") == 1 ? "" : "s");
}

static void
print_proposal(const struct json *sheet)
{
	const struct json *piece = json_get(sheet, "micro_batch");
	char limit[16], peak[16];

	if (json_kind(piece) != JSON_OBJECT)
		return;
	bytes(limit, sheet, "limit");
	bytes(peak, piece, "peak");
	if (count(piece, "proposed") > 0)
		cmd_print_line("%-21s %llu: a task takes %s of the %s", "parallel.micro_batch",
		    count(piece, "proposed"), peak, limit);
	else
		cmd_print_line("%-21s none fits into %s: the least that a task takes is %s",
		    "parallel.micro_batch", limit, peak);
}

void
plan_statement_print_task(const struct json *sheet)
{
	const struct json *b = json_get(sheet, "bytes");
	char down[16], up[16], steps[48] = "as many steps as the time allows";

	if (count(sheet, "steps") > 0)
		snprintf(steps, sizeof(steps), "%llu steps", count(sheet, "steps"));
	cmd_print_line("%-21s %llu examples, %s, %llu parameters", "a task",
	    count(sheet, "examples"), steps, count(sheet, "parameters"));
	bytes(down, b, "model");
	bytes(up, b, "delta");
	cmd_print_line("%-21s %s down, %s up", "", down, up);
	print_layers(json_get(sheet, "layers"));
	if (json_count(json_get(sheet, "layers")) > 0)
		print_network(json_get(sheet, "memory"));
	print_footprint(json_get(sheet, "memory"));
	print_proposal(sheet);
}
