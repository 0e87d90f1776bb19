#include "estimate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "body.h"
#include "dataset.h"
#include "file.h"
#include "modelfile.h"
#include "net.h"
#include "network.h"
#include "population.h"
#include "server_step.h"
#include "tensors.h"
#include "tls.h"
#include "trainer.h"
#include "vectors.h"

/* [retention] where no coordinator says another. */
#define KEEP_LAST 3
#define KEEP_EVERY 10
#define EXAMPLES_DEFAULT 1000 /* of a device, where nothing is said of it */

/* What the making of an estimate works with. */
struct making {
	struct plan_estimate *out;
	const struct plan_want *want;
	struct settings *settings;
	struct tensor_table table;
	struct fleet fleet;
	struct json *trial; /* what the coordinator says of the document */
	int init_fd; /* a fetched model; -1: none */
	char init[32]; /* where it is found */
	const char *first; /* file of the first weights; NULL: they are drawn */
};

static void __attribute__((format(printf, 2, 3)))
cannot(struct plan_estimate *e, const char *fmt, ...)
{
	va_list ap;

	if (e->problem_count == PLAN_PROBLEMS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(e->problems[e->problem_count++], PLAN_PROBLEM_TEXT, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
warn(struct plan_estimate *e, const char *fmt, ...)
{
	char text[PLAN_PROBLEM_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!e->warnings)
		e->warnings = json_array();
	json_push(e->warnings, json_new_string(text));
}

/* --- the document */

static enum err
read_document(struct making *m, struct why *why)
{
	struct plan_estimate *out = m->out;
	enum err e = job_parse(&out->job, m->want->text, m->want->len, why);

	if (!e)
		e = job_check(&out->job, why);
	if (!e && out->job.only_evaluates)
		e = err_set(why, ERR_UNSUPPORTED, "a job of kind evaluate has no rounds to plan");
	if (!e)
		e = m->want->config ? settings_load(&m->settings, "", m->want->config, why)
				    : settings_parse(&m->settings, "", "", 0, why);
	return e;
}

/* What it refuses is a finding. */
static enum err
ask(struct making *m, struct why *why)
{
	struct plan_estimate *out = m->out;
	enum err e = cmd_body_document(
	    m->want->admin, "/v1/plan", m->want->text, m->want->len, &m->trial, why);

	if (e == ERR_INVALID || e == ERR_STATE || e == ERR_LIMIT) {
		cannot(out, "%s", why->text);
		return ERR_OK;
	}
	if (e == ERR_NOTFOUND)
		return err_set(why, ERR_UNSUPPORTED,
		    "this coordinator is too old to plan a job: give a --fleet");
	if (e)
		return e;
	out->warnings = json_copy(json_get(m->trial, "warnings"));
	(void)json_bool(json_get(m->trial, "exists"), &out->exists);
	return ERR_OK;
}

/* --- the model */

/* Into a file without a name, which goes whatever becomes of this process. */
static enum err
fetch_init(struct making *m, struct why *why)
{
	uint64_t bytes = 0;
	enum err e = file_scratch(&m->init_fd, why);

	if (e)
		return e;
	snprintf(m->init, sizeof(m->init), "/proc/self/fd/%d", m->init_fd);
	m->first = m->init;
	/* What the coordinator keeps may be wider than what a job makes of it. */
	(void)json_u64(json_get(m->trial, "model_bytes"), &bytes);
	return cmd_body_model(m->want->admin, m->out->job.recipe.init, m->init_fd,
	    2 * bytes + MODELFILE_HEADER_MAX + MODELFILE_PREFIX, why);
}

static enum err
read_table(struct making *m, struct why *why)
{
	struct tensors file;
	enum err e = tensors_open(&file, m->first, why);

	if (e)
		return e;
	e = tensor_table_copy(&m->table, &file.table);
	tensors_close(&file);
	return e;
}

static enum err
draw_table(struct making *m, struct why *why)
{
	struct net *net = NULL;
	enum err e = cmd_network_new(&net, &m->out->job.recipe, 1, why);

	if (!e)
		e = tensor_table_copy(&m->table, net_tensors(net));
	net_free(net);
	return e;
}

static enum err
take_table(struct making *m, struct why *why)
{
	const struct recipe *r = &m->out->job.recipe;
	enum err e = ERR_OK;

	m->first = m->want->init;
	if (r->init[0] && !m->first && m->want->admin)
		e = fetch_init(m, why);
	else if (!m->first && (r->init[0] || r->net.layer_count == 0))
		e = err_set(why, ERR_INVALID,
		    "the job begins with a model of its own: give its file with --init FILE");
	if (!e)
		e = r->net.layer_count > 0 ? draw_table(m, why) : read_table(m, why);
	return e ? e : tensor_table_assign(&m->table, r->rules, r->rule_count, why);
}

/* --- a device */

static void
shape_of(struct dataset *d, const struct recipe *r, uint64_t examples)
{
	*d = (struct dataset){.count = (size_t)examples,
	    .dims = r->data.dims,
	    .features = 1,
	    .classes = r->data.class_count};
	for (unsigned i = 0; i < r->data.dims; i++)
		d->features *= r->data.shape[i];
}

static int
compare_counts(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of the device in the middle: what one alone says of itself moves nothing. */
static enum err
median_examples(const struct fleet_profiles *p, uint64_t *out, struct why *why)
{
	uint64_t *counts = calloc(p->count + 1, sizeof(*counts));
	size_t n = 0;

	if (!counts)
		return err_set(why, ERR_NOMEM, "no memory for %zu devices", p->count);
	for (size_t i = 0; i < p->count; i++)
		if (p->items[i].examples > 0)
			counts[n++] = p->items[i].examples;
	if (n > 0)
		qsort(counts, n, sizeof(*counts), compare_counts);
	*out = n > 0 ? counts[n / 2] : EXAMPLES_DEFAULT;
	free(counts);
	return ERR_OK;
}

/* Beside its examples, of which nobody knows how much of them lies in memory. */
static enum err
measure(struct making *m, uint64_t examples, struct footprint *f, struct why *why)
{
	struct dataset set;

	const struct recipe *recipe = &m->out->job.recipe;

	shape_of(&set, recipe, examples);
	const struct footprint_want want = {.recipe = recipe,
	    .kind = TASK_TRAIN,
	    .table = &m->table,
	    .threads = m->settings->threads,
	    .program = !trainer_is_builtin(m->settings, recipe),
	    .train = &set,
	    .validation = recipe->data.validation > 0 ? examples : 0,
	    .most = m->settings->memory_bytes};
	return footprint_of(f, &want, why);
}

/* What the settings do not allow is a finding. */
static enum err
limited(struct making *m, enum err e, const struct why *why)
{
	if (e == ERR_LIMIT)
		cannot(m->out, "memory: %s", why->text);
	return e == ERR_LIMIT ? ERR_OK : e;
}

/* It grows with the examples as a line: by their order, and by the batch where that is all of them. */
static enum err
measure_need(struct making *m, struct plan_need *need, struct why *why)
{
	struct footprint one, two;
	uint64_t n = EXAMPLES_DEFAULT;
	enum err e = measure(m, n, &one, why);

	if (!e)
		e = measure(m, 2 * n, &two, why);
	if (e)
		return limited(m, e, why);
	need->per_example = (double)(two.peak - one.peak) / (double)n;
	need->bytes = (double)one.peak - need->per_example * (double)n;
	return ERR_OK;
}

static enum err
measure_device(struct making *m, const struct fleet_profiles *profiles, struct why *why)
{
	struct plan_estimate *out = m->out;
	enum err e = median_examples(profiles, &out->examples, why);

	if (!e)
		e = measure(m, out->examples, &out->footprint, why);
	return limited(m, e, why);
}

static void
check_memory(struct making *m)
{
	uint64_t most = m->settings->memory_bytes;

	if (most > 0 && m->out->footprint.peak > most)
		cannot(m->out,
		    "memory: a task takes %llu bytes of a device, and memory_bytes allows %llu",
		    (unsigned long long)m->out->footprint.peak, (unsigned long long)most);
}

/* --- the fleet */

/* Devices of which nothing is said but how many they are. */
static enum err
like(struct making *m, struct fleet_profiles *profiles)
{
	enum err e = fleet_profiles_like(profiles, m->want->devices);

	if (!e && !settings_find_data(m->settings, m->out->job.recipe.data.name))
		profiles->items[0].examples = EXAMPLES_DEFAULT;
	return e;
}

static enum err
read_fleet(struct making *m, struct fleet_profiles *profiles, const struct plan_need *need,
    struct why *why)
{
	struct plan_estimate *out = m->out;
	const struct plan_want *want = m->want;

	out->has_times = true;
	if (want->fleet_file)
		return fleet_profiles_load(profiles, want->fleet_file, why);
	out->assumed = want->devices > 0;
	if (out->assumed)
		return like(m, profiles);
	out->is_known = true;
	enum err e = plan_known_fleet(&out->known, want->admin, &out->job.recipe, need, why);
	out->has_times = out->known.measured > 0;
	*profiles = out->known.fleet;
	out->known.fleet = (struct fleet_profiles){.count = 0};
	return e;
}

/* may: how many devices the job may have, by labels and names, too. */
static void
check_known(struct plan_estimate *e, uint64_t may)
{
	const struct plan_known *k = &e->known;
	const struct round_spec *round = &e->job.round;
	const uint32_t needed = job_round_devices(round);
	char text[JOB_ROUND_SENTENCE];

	if (job_round_lacks_devices(text, round, may) ||
	    job_round_lacks_devices(text, round, k->devices) ||
	    job_round_lacks_data(text, round, &e->job.recipe.data, k->with_data, k->devices))
		cannot(e, "%s", text);
	else if (k->with_data - k->too_many < needed)
		cannot(e,
		    "examples: %llu of %llu devices with the data have more examples than "
		    "aggregate.max_examples (%llu) and agents that draw no share of them, and a "
		    "round wants reports of %u",
		    (unsigned long long)k->too_many, (unsigned long long)k->with_data,
		    (unsigned long long)e->job.aggregate.max_examples, needed);
	else if (k->with_memory < needed)
		cannot(e,
		    "memory: a task takes some %llu bytes; %llu of %llu devices with the data have "
		    "so "
		    "much, and a round wants reports of %u",
		    (unsigned long long)e->footprint.peak, (unsigned long long)k->with_memory,
		    (unsigned long long)k->with_data, needed);
}

static enum err
take_fleet(struct making *m, struct why *why)
{
	struct fleet_profiles profiles = {.count = 0};
	struct plan_estimate *out = m->out;
	uint64_t may = UINT64_MAX;
	struct plan_need need = {.max_examples = out->job.aggregate.max_examples};

	enum err e = measure_need(m, &need, why);
	if (e || out->problem_count > 0)
		return e;
	e = read_fleet(m, &profiles, &need, why);
	out->devices = profiles.devices;
	if (!e)
		e = measure_device(m, &profiles, why);
	/* Of a job that is over nobody is counted any more. */
	if (!json_u64(json_get(json_get(m->trial, "reach"), "devices"), &may) || out->exists)
		may = UINT64_MAX;
	if (!e && out->is_known)
		check_known(out, may);
	else if (!e && out->devices < job_round_devices(&out->job.round))
		cannot(out, "goal: %llu devices, and a round wants reports of %u",
		    (unsigned long long)out->devices, job_round_devices(&out->job.round));
	if (!e && out->problem_count == 0)
		e = fleet_init(&m->fleet, &profiles, 0, out->job.seed, why);
	fleet_profiles_deinit(&profiles);
	return e;
}

/* --- the coordinator */

static void
read_forecast(struct plan_estimate *e, const struct json *f)
{
	(void)json_u64(json_get(f, "rounds_left"), &e->disk.rounds_left);
	(void)json_u64(json_get(f, "models"), &e->disk.models_bytes);
	(void)json_u64(json_get(f, "spool"), &e->disk.spool_bytes);
	(void)json_u64(json_get(f, "deltas"), &e->disk.deltas_bytes);
	(void)json_u64(json_get(f, "database"), &e->disk.database_bytes);
	(void)json_bool(json_get(f, "fits"), &e->disk_fits);
	if (!e->disk_fits)
		cannot(e, "disk: the coordinator has no room for what the job needs");
}

static void
count_disk(struct making *m)
{
	struct plan_estimate *out = m->out;
	const struct json *said = json_get(m->trial, "forecast");
	struct forecast_job j = {.spec = &out->job,
	    .keep = out->job.keep,
	    .elements = m->table.elements,
	    .model_bytes = out->bytes.model,
	    .payload_bytes =
		vectors_times(recipe_upload_most(&out->job.recipe.upload, m->table.elements),
		    out->job.aggregate.variates > 0),
	    .state_bytes = server_step_bytes(&out->job.aggregate, &out->job.download, &m->table),
	    .rounds = out->job.stop.rounds};

	out->disk_fits = true;
	if (said) {
		read_forecast(out, said);
		return;
	}
	if (j.keep.last == JOB_KEEP_CONFIGURED)
		j.keep.last = KEEP_LAST;
	if (j.keep.every == JOB_KEEP_CONFIGURED)
		j.keep.every = KEEP_EVERY;
	out->disk = forecast_job(&j);
	out->disk.deltas_bytes = 0; /* kept only where [spool] says so */
}

/* Seconds of a processor, measured with four devices and models of 3 kB to 6 MB on a core of 2.5 GHz: for a round, for a report with its
 * requests and signatures, and for a byte that comes or goes, is encrypted, hashed, stored and folded. */
struct price {
	double round, report, byte;
};
static const struct price with_mbedtls = {0.004, 0.0045, 9.5e-9};
static const struct price with_openssl = {0.004, 0.0025, 2.5e-9};
/* Likewise, of the time between the last delta of a round and the first task of the next, when nothing else is done: for the round, and
 * for a byte that is folded or written. */
#define BETWEEN_ROUND 0.03
#define BETWEEN_BYTE 1e-9

static void
count_processor(struct plan_estimate *e)
{
	const struct plan_playout *c = &e->playout;
	const struct price *k = strstr(tls_backend(), "mbedTLS") ? &with_mbedtls : &with_openssl;

	if (c->played == 0)
		return;
	double rounds = (double)c->played;
	e->cpu.round = k->round + k->report * (double)c->reports / rounds +
	    k->byte * (double)(c->bytes_up + c->bytes_down) / rounds;
	e->between_seconds =
	    BETWEEN_ROUND + BETWEEN_BYTE * ((double)c->bytes_up / rounds + (double)e->bytes.model);
	e->cpu.job = e->cpu.round * (double)c->rounds;
}

/* --- all of it */

/* Labels were the coordinator's to look at: those that are here take part. */
static enum err
play(struct making *m, struct why *why)
{
	struct plan_estimate *out = m->out;
	struct job_spec job = out->job;

	job.select.label_count = 0;
	const struct plan_playout_want want = {.job = &job,
	    .text = m->want->text,
	    .len = m->want->len,
	    .fleet = &m->fleet,
	    .settings = m->settings,
	    .init = m->first};
	enum err e = plan_playout_play(&out->playout, &want, why);
	if (!e && (out->playout.stuck || out->playout.played == 0))
		cannot(out, "rounds: %s", out->playout.reason);
	else if (!e && out->playout.waits > 0)
		warn(out, "rounds may wait: in %u of %u draws of who is there %s",
		    out->playout.waits, out->playout.waits + 1, out->playout.reason);
	return e;
}

/* What the coordinator would say of the document alone. */
static void
warn_alone(struct plan_estimate *out)
{
	const char *warning = recipe_warning(&out->job.recipe);

	if (warning)
		warn(out, "%s", warning);
}

static enum err
make(struct making *m, struct why *why)
{
	struct plan_estimate *out = m->out;
	enum err e = read_document(m, why);

	if (!e && m->want->admin)
		e = ask(m, why);
	else if (!e)
		warn_alone(out);
	if (e || out->problem_count > 0)
		return e;
	e = take_table(m, why);
	if (!e)
		e = footprint_bytes(&out->bytes, &out->job.recipe, &m->table, why);
	out->parameters = m->table.elements;
	out->difference = forecast_difference_bytes(&out->job, m->table.elements);
	if (!e)
		e = take_fleet(m, why);
	if (e)
		return e;
	check_memory(m);
	count_disk(m);
	if (out->problem_count == 0)
		e = play(m, why);
	if (!e)
		count_processor(out);
	return e;
}

enum err
plan_estimate(struct plan_estimate *out, const struct plan_want *want, struct why *why)
{
	struct making m = {.out = out, .want = want, .init_fd = -1};

	memset(out, 0, sizeof(*out));
	enum err e = make(&m, why);
	if (m.init_fd >= 0)
		close(m.init_fd);
	tensor_table_deinit(&m.table);
	fleet_deinit(&m.fleet);
	settings_free(m.settings);
	json_free(m.trial);
	return e;
}

void
plan_estimate_deinit(struct plan_estimate *e)
{
	plan_playout_deinit(&e->playout);
	plan_known_deinit(&e->known);
	json_free(e->warnings);
	job_deinit(&e->job);
	memset(e, 0, sizeof(*e));
}
