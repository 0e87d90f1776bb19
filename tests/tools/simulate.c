/*
 * simulate JOB FLEET [--threads N] [--out MODEL] [--models]: the rounds of a job document on a fleet in this one process, without
 * network, keys or disk, with the code of rivulet and rivuletd: the same job, data and device ids give the same models, to the
 * bit (tests/e2e/52-simulate.sh). A line of JSON per round on standard output. FLEET is described in tests/repro/README.md.
 * Exit: 0 done, 3 the quorum was missed, 4 three rounds in a row were not finite, 1 all else.
 */
#include "simulate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "hex.h"
#include "num.h"
#include "options.h"

#define FAILED_MAX 3 /* as the coordinator */

static void
add_figure(struct json *o, const char *key, double v)
{
	if (isfinite(v))
		json_add_double(o, key, v);
}

static void
print_round(const struct simulate_round *r, const char *state, bool with_model)
{
	struct json *o = json_object();
	struct buf text;
	char hex[65];

	buf_init(&text, 1u << 20);
	json_add_u64(o, "round", r->number);
	if (strcmp(state, "committed") != 0)
		json_add_string(o, "state", state);
	if (r->evaluated) {
		add_figure(o, "accuracy", r->accuracy);
		add_figure(o, "loss", r->loss);
		add_figure(o, "backdoor", r->backdoor);
	}
	json_add_u64(o, "reports", r->reports);
	json_add_u64(o, "refused", r->refused);
	json_add_u64(o, "bytes_up", r->bytes_up);
	json_add_u64(o, "bytes_down", r->bytes_down);
	add_figure(o, "train_loss", r->train_loss);
	add_figure(o, "norm", r->norm);
	json_add_double(o, "seconds", round(r->seconds * 1000) / 1000);
	if (with_model) {
		hex_encode(hex, r->model, sizeof(r->model));
		json_add_string(o, "model", hex);
	}
	if (json_print(&text, o, false) == ERR_OK)
		puts(buf_str(&text));
	fflush(stdout);
	buf_deinit(&text);
	json_free(o);
}

static bool
is_last(const struct simulate_round *r)
{
	const struct stop_spec *stop = &r->job->stop;

	if (r->evaluated && stop->has_accuracy && r->accuracy >= stop->accuracy)
		return true;
	if (r->evaluated && stop->has_loss && r->loss <= stop->loss)
		return true;
	return stop->rounds > 0 && r->number >= stop->rounds;
}

/* Returns the exit status. */
static int
run(struct simulate_round *r, bool with_model, struct why *why)
{
	unsigned failed = 0;

	for (;;) {
		enum err e = simulate_round_run(r, why);
		if (e == ERR_STATE) {
			print_round(r, "abandoned", with_model);
			return 3;
		}
		failed = e == ERR_NUMERIC ? failed + 1 : 0;
		if (e && e != ERR_NUMERIC)
			return cmd_options_fail(e, why);
		print_round(r, e ? "failed" : "committed", with_model);
		if (failed == FAILED_MAX)
			return 4;
		if (is_last(r))
			return 0;
	}
}

static int
go(const char *job_file, const char *fleet_file, const char *threads, const char *out,
    bool with_model)
{
	struct job_spec job = {.seed = 0};
	struct simulate_fleet fleet = {.count = 0};
	struct simulate_round r = {.threads = 1, .fleet = &fleet};
	struct why why = {""};
	char *text = NULL;
	size_t len = 0;
	uint64_t n = 1;
	int status = 0;

	enum err e = file_read(job_file, JOB_DOCUMENT_MAX, &text, &len, &why);
	if (!e)
		e = job_parse(&job, text, len, &why);
	if (!e && threads && (!num_u64(threads, 1024, &n) || n == 0))
		e = err_set(&why, ERR_INVALID, "--threads: a number from 1 to 1024");
	r.threads = (unsigned)n;
	if (!e)
		e = simulate_fleet_load(&fleet, fleet_file, &job, &why);
	if (!e)
		e = simulate_round_init(&r, &job, text, len, &why);
	status = e ? cmd_options_fail(e, &why) : run(&r, with_model, &why);
	if (status == 0 && out && (e = simulate_round_save(&r, out, &why)))
		status = cmd_options_fail(e, &why);
	simulate_round_deinit(&r);
	simulate_fleet_deinit(&fleet);
	job_deinit(&job);
	free(text);
	return status;
}

int
main(int argc, char **argv)
{
	const char *threads = NULL, *out = NULL;
	bool with_model = false;
	const struct cmd_option table[] = {
	    {"threads", 0, "N", "train so many devices at a time", &threads, NULL},
	    {"out", 'o', "FILE", "write the last model there", &out, NULL},
	    {"models", 0, NULL, "name each round's model", NULL, &with_model},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	struct cmd_words words;
	struct why why = {""};

	enum err e = cmd_options_parse(&words, table, argc, argv, &why);
	if (!e && words.count != 2)
		e = err_set(&why, ERR_INVALID,
		    "usage: simulate JOB FLEET [--threads N] [--out MODEL] [--models]");
	if (e)
		return cmd_options_fail(e, &why);
	return go(words.words[0], words.words[1], threads, out, with_model);
}
