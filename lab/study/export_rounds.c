#include "export_rounds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "board.h"
#include "changed.h"
#include "cmd.h"
#include "contact.h"
#include "json.h"
#include "print.h"
#include "session.h"
#include "sheet.h"

#define LINE_MAX_BYTES (4u << 20) /* of one round */

struct export
{
	struct cmd_admin a;
	const char *csv, *jsonl, *directory;
	bool follow;
	const struct option_words *words;
	/* A file of lines. */
	FILE *out;
	struct sheet sheet;
	const struct json *job;
};

/* --- Lines */

static enum err
print_row(void *context, const struct json *round, struct why *why)
{
	struct export *x = context;
	struct buf line;

	buf_init(&line, LINE_MAX_BYTES);
	enum err e = sheet_row(&line, &x->sheet, x->job, round);
	if (e)
		err_set(why, e, "a round cannot be written: %s", err_name(e));
	else
		fwrite(buf_str(&line), 1, line.len, x->out);
	buf_deinit(&line);
	return e;
}

static enum err
look_at(void *context, const struct json *round, struct why *why)
{
	struct export *x = context;

	return sheet_look(&x->sheet, round, why);
}

/* A ROUND with its job's id and name before its own members. */
static enum err
print_line(void *context, const struct json *round, struct why *why)
{
	struct export *x = context;
	struct json *line = json_object();
	struct buf text;

	json_add(line, "job", json_copy(json_get(x->job, "job")));
	json_add(line, "name", json_copy(json_get(x->job, "name")));
	for (const struct json *m = json_first(round); m; m = json_next(m))
		json_add(line, json_key(m), json_copy(m));
	buf_init(&text, LINE_MAX_BYTES);
	enum err e = json_print(&text, line, false);
	if (e)
		err_set(why, e, "a round cannot be written: %s", err_name(e));
	else if (x->out == stdout)
		cmd_print_json_line(line);
	else
		fprintf(x->out, "%s\n", buf_str(&text));
	buf_deinit(&text);
	json_free(line);
	return e;
}

static enum err
each_job(struct export *x, cmd_rounds_visit *visit, struct why *why)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < x->words->count && !e; i++) {
		struct json *job = NULL;
		e = cmd_rounds_job(&x->a, x->words->words[i], &job, why);
		x->job = job;
		if (!e)
			e = cmd_rounds_each(&x->a, job, 1, visit, x, why);
		json_free(job);
	}
	return e;
}

static enum err
print_sheet(struct export *x, struct why *why)
{
	struct buf heads;
	enum err e = each_job(x, look_at, why);

	buf_init(&heads, LINE_MAX_BYTES);
	if (!e)
		e = sheet_heads(&heads, &x->sheet);
	if (!e)
		fwrite(buf_str(&heads), 1, heads.len, x->out);
	buf_deinit(&heads);
	if (!e)
		e = each_job(x, print_row, why);
	sheet_deinit(&x->sheet);
	return e;
}

/* The file is there when all of it is. */
static enum err
write_lines(struct export *x, struct why *why)
{
	const char *path = x->csv ? x->csv : x->jsonl;
	bool out = strcmp(path, "-") == 0;
	char temp[4096];

	if ((size_t)snprintf(temp, sizeof(temp), "%s.part", path) >= sizeof(temp))
		return err_set(why, ERR_LIMIT, "the file's name is too long");
	x->out = out ? stdout : fopen(temp, "we");
	if (!x->out)
		return err_errno(why, "create %s", temp);
	enum err e = x->csv ? print_sheet(x, why) : each_job(x, print_line, why);
	if (!e && fflush(x->out) != 0)
		e = err_errno(why, "write %s", path);
	if (out)
		return e;
	if (fclose(x->out) != 0 && !e)
		e = err_errno(why, "write %s", temp);
	if (!e && rename(temp, path) != 0)
		e = err_errno(why, "rename %s", temp);
	if (e)
		unlink(temp);
	return e;
}

/* --- TensorBoard */

static enum err
step_all(struct export *x, struct cmd_board *boards, size_t count, bool *over, struct why *why)
{
	*over = true;
	for (size_t i = 0; i < count; i++) {
		enum err e = boards[i].over ? ERR_OK : cmd_board_step(&boards[i], &x->a, why);
		if (e)
			return e;
		*over = *over && boards[i].over;
	}
	return ERR_OK;
}

static enum err
stay(struct export *x, struct cmd_board *boards, size_t count, struct why *why)
{
	static const struct cmd_changed_pause pause = {.poll_ms = 500, .most_s = 25};
	struct cmd_contact contact = {.met = true};
	struct cmd_changed changed = {.after = 0};
	bool over = false;

	for (;;) {
		enum err e = step_all(x, boards, count, &over, why);
		if (x->follow)
			e = cmd_contact_note(&contact, e, why);
		if (e || !x->follow || (over && !contact.away))
			return e;
		cmd_changed_wait(&x->a, &changed, contact.away, &pause);
	}
}

static void
print_boards(const struct export *x, const struct cmd_board *boards, size_t count)
{
	struct json *doc = json_object(), *runs = json_array();

	for (size_t i = 0; i < count; i++) {
		struct json *run = json_object();
		json_add(run, "job", json_copy(json_get(boards[i].job, "job")));
		json_add_string(run, "directory", boards[i].path);
		json_add_u64(run, "rounds", boards[i].rounds);
		json_push(runs, run);
		if (!x->a.json)
			cmd_print_line("%s: %" PRIu64 " rounds", boards[i].path, boards[i].rounds);
	}
	json_add(doc, "runs", runs);
	if (x->a.json)
		cmd_print_json(doc);
	json_free(doc);
}

static enum err
write_boards(struct export *x, struct why *why)
{
	size_t count = 0;
	enum err e = ERR_OK;
	struct cmd_board *boards = calloc(x->words->count, sizeof(*boards));

	if (!boards)
		return err_set(why, ERR_NOMEM, "no memory");
	for (size_t i = 0; i < x->words->count && !e; i++) {
		e = cmd_board_open(&boards[i], &x->a, x->words->words[i], x->directory, why);
		count += !e;
	}
	if (!e)
		e = stay(x, boards, count, why);
	if (!e)
		print_boards(x, boards, count);
	for (size_t i = 0; i < count; i++)
		cmd_board_close(&boards[i]);
	free(boards);
	return e;
}

static const char *
misuse(const struct export *x)
{
	if (!!x->csv + !!x->jsonl + !!x->directory != 1)
		return "one of --csv, --jsonl and --tensorboard is wanted";
	if (x->follow && !x->directory)
		return "--follow goes with --tensorboard";
	return NULL;
}

int
cmd_export_rounds(int argc, char **argv)
{
	struct export x = {.csv = NULL};
	const struct option_entry table[] = {
	    {"csv", 0, "FILE", "a line per round, a column per figure (-: standard output)", &x.csv,
		NULL},
	    {"jsonl", 0, "FILE", "a ROUND per line (-: standard output)", &x.jsonl, NULL},
	    {"tensorboard", 0, "DIR", "a run per job, DIR/NAME-ID, for TensorBoard", &x.directory,
		NULL},
	    {"follow", 'f', NULL, "of --tensorboard: until the jobs end", NULL, &x.follow},
	    CMD_ADMIN_OPTIONS(&x.a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"job export JOB... --csv FILE | --jsonl FILE | "
					   "--tensorboard DIR [--follow] " CMD_ADMIN_USAGE,
	    "Writes the rounds of jobs that have ended.\nA run that DIR has goes on where it "
	    "ended; --follow goes on when the coordinator was away.",
	    1, OPTION_WORDS_MAX};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	const char *wrong = misuse(&x);
	if (wrong) {
		cmd_print_error("%s", wrong);
		return CMD_USAGE;
	}
	x.words = &words;
	enum err e = cmd_admin_open(&x.a, &why);
	if (!e)
		e = x.directory ? write_boards(&x, &why) : write_lines(&x, &why);
	return cmd_admin_end(&x.a, e, &why);
}
