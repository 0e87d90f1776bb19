#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cpu.h"
#include "file.h"
#include "hash.h"
#include "interrupt.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "output.h"
#include "preset.h"
#include "print.h"
#include "refuse.h"
#include "replay.h"

#define THREADS_MAX 1024

/* What the command was asked for, and everything that lives as long as it. */
struct simulation {
	const char *job_file, *devices, *fleet_file, *speeds, *config, *data, *seed, *rounds,
	    *threads, *jobs, *out_file, *replay;
	bool timing_only;
	char *text;
	size_t len;
	struct job_spec job;
	struct settings *settings;
	struct fleet fleet;
	struct simulate_records records; /* --replay */
	struct simulate_options options;
};

static void
print_round(void *context, const struct simulate_line *line)
{
	struct json *o = simulate_output_line(line);

	(void)context;
	cmd_print_json_line(o);
	fflush(stdout);
	json_free(o);
}

/* --- what was asked for */

static enum err
read_job(struct simulation *s, struct why *why)
{
	enum err e = preset_read(s->job_file, NULL, &s->text, &s->len, why);

	if (e)
		return e;
	e = job_parse(&s->job, s->text, s->len, why);
	if (!e)
		e = job_check(&s->job, why);
	if (e) {
		const struct why inner = *why;
		return err_set(why, e, "%.100s: %.140s", s->job_file, inner.text);
	}
	s->options.setup.job = &s->job;
	s->options.setup.text = s->text;
	s->options.setup.len = s->len;
	return ERR_OK;
}

static enum err
read_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out,
    struct why *why)
{
	if (!text)
		return ERR_OK;
	if (!num_u64(text, most, out) || *out < least)
		return err_set(why, ERR_INVALID, "%s wants a number from %llu to %llu", option,
		    (unsigned long long)least, (unsigned long long)most);
	return ERR_OK;
}

static enum err
read_threads(struct simulation *s, struct why *why)
{
	uint64_t threads = cpu_count(), jobs = 1;
	enum err e = read_number("--threads", s->threads, 1, THREADS_MAX, &threads, why);

	if (!e)
		e = read_number("--jobs", s->jobs, 1, THREADS_MAX, &jobs, why);
	s->options.setup.threads = (unsigned)threads;
	s->options.jobs = (unsigned)jobs;
	return e;
}

static enum err
read_speeds(const struct simulation *s, double *sigma, struct why *why)
{
	static const char start[] = "lognormal:";

	*sigma = 0;
	if (!s->speeds)
		return ERR_OK;
	if (strncmp(s->speeds, start, strlen(start)) != 0 ||
	    !num_double(s->speeds + strlen(start), sigma) || *sigma < 0 || *sigma > 5)
		return err_set(
		    why, ERR_INVALID, "--speeds wants lognormal:SIGMA, with a sigma from 0 to 5");
	return ERR_OK;
}

static enum err
make_fleet(struct simulation *s, struct why *why)
{
	struct fleet_profiles profiles = {.count = 0};
	uint64_t count = 0;
	double sigma;
	enum err e = read_speeds(s, &sigma, why);

	if (!e && !s->devices == !s->fleet_file)
		e = err_set(why, ERR_INVALID,
		    "say either how many devices there are, --devices N, or what they are like, "
		    "--fleet FILE");
	if (!e)
		e = read_number("--devices", s->devices, 1, FLEET_DEVICES_MAX, &count, why);
	if (!e && s->fleet_file)
		e = fleet_profiles_load(&profiles, s->fleet_file, why);
	else if (!e)
		e = fleet_profiles_like(&profiles, count);
	if (!e && s->replay)
		e = simulate_records_name(&s->records, &profiles, why);
	if (!e)
		e = fleet_init(&s->fleet, &profiles, sigma, s->options.seed, why);
	fleet_profiles_deinit(&profiles);
	s->options.fleet = &s->fleet;
	return e;
}

static enum err
read_settings(struct simulation *s, struct why *why)
{
	const char *name = s->data ? s->data : s->job.recipe.data.name;
	enum err e = s->config ? settings_load(&s->settings, "", s->config, why)
			       : settings_parse(&s->settings, "", "", 0, why);

	if (e)
		return e;
	/* Devices are played side by side: one thread each. */
	s->settings->threads = 1;
	s->options.setup.settings = s->settings;
	s->options.data = settings_find_data(s->settings, name);
	return s->data && !s->options.data
	    ? err_set(why, ERR_NOTFOUND, "no [data %s] in %s", name,
		  s->config ? s->config : "the settings: give them with --config FILE")
	    : ERR_OK;
}

static void
note_hostile(struct simulation *s)
{
	for (size_t i = 0; i < s->fleet.profiles.count; i++) {
		enum fleet_attack a = s->fleet.profiles.items[i].attack;
		s->options.setup.hostile |= a != FLEET_HONEST;
		s->options.setup.backdoor |= a == FLEET_BACKDOOR;
	}
}

static enum err
read_records(struct simulation *s, struct why *why)
{
	uint8_t digest[HASH_LEN];

	if (!s->replay)
		return ERR_OK;
	if (s->timing_only)
		return err_set(
		    why, ERR_INVALID, "--replay repeats what was trained: not with --timing-only");
	hash_sha256(digest, s->text, s->len);
	return simulate_records_read(&s->records, s->replay, digest, why);
}

/* The defaults that a coordinator of this version notes beside a new job; of a real job those that its coordinator did. */
static void
stamp(struct simulation *s)
{
	const struct job_stamp fresh = job_stamp_new(&s->job);
	const struct simulate_records *r = &s->records;

	if (!s->replay)
		job_stamp_apply(&s->job, &fresh);
	else if (r->count > 0)
		job_stamp_apply(&s->job, &r->items[0].stamp);
}

/* Models are the same without it, but where a guard goes by it. */
static bool
measures(const struct simulation *s)
{
	const char *word =
	    s->options.setup.test ? s->options.setup.test : s->job.recipe.evaluate_data;

	return !s->timing_only &&
	    (!s->replay || s->job.guard.on || settings_find_data(s->settings, word));
}

/* Said once: the rounds' lines have no figures then. */
static void
note_central(const struct simulation *s)
{
	const struct recipe *r = &s->job.recipe;
	const bool known = r->net.layer_count > 0;

	if (r->evaluate_by != EVALUATE_PROGRAM || s->timing_only || s->replay)
		return;
	if (s->options.setup.test && known)
		cmd_print_error("note: evaluate.by \"program\": no evaluator runs in a simulation; "
				"what is measured is the built-in network on --test %s",
		    s->options.setup.test);
	else
		cmd_print_error(
		    "note: evaluate.by \"program\": no evaluator runs in a simulation; its "
		    "rounds have no figures, and guard, best and target do nothing%s",
		    known ? " (--test NAME measures the built-in network on that set)" : "");
}

static enum err
prepare(struct simulation *s, struct why *why)
{
	enum err e = read_job(s, why);

	s->options.seed = s->job.seed;
	if (!e)
		e = read_number("--seed", s->seed, 0, JSON_INT_MAX, &s->options.seed, why);
	if (!e)
		e = read_number("--rounds", s->rounds, 1, JSON_INT_MAX, &s->options.rounds, why);
	if (!e)
		e = read_threads(s, why);
	if (!e)
		e = read_records(s, why);
	if (!e)
		e = make_fleet(s, why);
	if (!e)
		e = read_settings(s, why);
	if (e)
		return e;
	stamp(s);
	note_hostile(s);
	const char *warning = recipe_warning(&s->options.setup.job->recipe);
	if (warning)
		cmd_print_error("note: %s", warning);
	s->options.setup.train = !s->timing_only;
	s->options.setup.measure = measures(s);
	s->options.line = print_round;
	s->options.stop = cmd_interrupted;
	e = simulate_refuse(&s->options, why);
	if (!e)
		note_central(s);
	return e;
}

/* --- doing it */

static int
exit_code(const struct simulate_result *r)
{
	if (r->end == SIMULATE_BROKEN_OFF)
		return CMD_INTERRUPTED;
	return r->end == SIMULATE_DONE || r->end == SIMULATE_LIMIT ? CMD_OK : CMD_FAILED;
}

static int
play(struct simulation *s)
{
	struct simulate_result result;
	struct why why = {""};
	enum err e = s->replay
	    ? simulate_replay(&result, &s->options, &s->records, s->out_file, &why)
	    : simulate_play(&result, &s->options, s->out_file, &why);
	int rc = e ? cmd_options_fail(e, &why) : exit_code(&result);
	if (e && cmd_interrupted(NULL))
		rc = CMD_INTERRUPTED;

	if (!e) {
		struct json *o = simulate_output_summary(&result, &s->fleet);
		cmd_print_json_line(o);
		json_free(o);
		if (rc != CMD_OK)
			cmd_print_error("%s", result.reason);
	}
	simulate_result_deinit(&result);
	return rc;
}

static int
go(struct simulation *s)
{
	struct why why = {""};

	cmd_interrupt_catch();
	enum err e = prepare(s, &why);
	int rc = e ? cmd_options_fail(e, &why) : play(s);
	fleet_deinit(&s->fleet);
	settings_free(s->settings);
	simulate_records_deinit(&s->records);
	job_deinit(&s->job);
	free(s->text);
	return rc;
}

int
cmd_simulate_main(int argc, char **argv)
{
	struct simulation s = {.job_file = NULL};
	const struct option_entry table[] = {
	    {"devices", 0, "N", "that many equal devices", &s.devices, NULL},
	    {"fleet", 0, "FILE", "what the devices are like: a table in CSV", &s.fleet_file, NULL},
	    {"speeds", 0, "lognormal:SIGMA", "multiply each device's speed by a number drawn so",
		&s.speeds, NULL},
	    {"config", 0, "FILE", "[data NAME] and [trainer NAME], as in a device's rivulet.conf",
		&s.config, NULL},
	    {"data", 0, "NAME", "data set that the devices share (default: the job's)", &s.data,
		NULL},
	    {"test", 0, "NAME", "data set that the coordinator evaluates on (default: the job's)",
		&s.options.setup.test, NULL},
	    {"init", 0, "FILE", "weights to begin with (default: drawn from the job's seed)",
		&s.options.setup.init, NULL},
	    {"seed", 0, "N", "of what the fleet does (default: the job's)", &s.seed, NULL},
	    {"rounds", 0, "N", "end after so many rounds", &s.rounds, NULL},
	    {"threads", 0, "N", "train so many devices at a time (default: all processors)",
		&s.threads, NULL},
	    {"jobs", 0, "N", "programs of [trainer NAME] at a time (default: 1)", &s.jobs, NULL},
	    {"timing-only", 0, NULL, "train nothing: times, bytes and who takes part", NULL,
		&s.timing_only},
	    {"replay", 0, "DIR",
		"repeat the job's rounds from its records, fetched by \"verify fetch\"", &s.replay,
		NULL},
	    {"out", 'o', "FILE", "write the last model there", &s.out_file, NULL},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "simulate JOBFILE --devices N | --fleet FILE [--config FILE] [--timing-only]",
	    "Plays a job on a fleet of devices that exist in this process alone, with a clock of "
	    "its own, and with\nthe code of the coordinator and the agent. A line of JSON for each "
	    "round, then a summary; docs/simulate.md.",
	    1, 1};
	struct option_words words;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	s.job_file = words.words[0];
	return go(&s);
}
