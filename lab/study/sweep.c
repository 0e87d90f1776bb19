#include "sweep.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "body.h"
#include "cells.h"
#include "changed.h"
#include "cmd.h"
#include "contact.h"
#include "job.h"
#include "num.h"
#include "preset.h"
#include "print.h"
#include "states.h"
#include "submit.h"

#define PARALLEL_MAX 100
#define MARK_MAX 16

struct sweep {
	struct cmd_admin a;
	struct cmd_cells all;
	struct json *base;
	const char *prefix;
	char own_prefix[GRID_NAME_MAX];
	uint64_t parallel;
	struct cmd_contact contact;
	struct cmd_changed changed;
	bool warned;
	char mark[MARK_MAX]; /* of whose jobs these are; "": not asked for yet */
};

static void
note(struct cmd_cell *cell, enum cmd_cells_state state, const char *reason)
{
	bool changed = cell->state != state;

	cell->state = state;
	snprintf(cell->reason, sizeof(cell->reason), "%s", reason ? reason : "");
	if (changed)
		cmd_print_error("%s: %s%s%s", cell->name, cmd_cells_name(state),
		    *cell->reason ? ": " : "", cell->reason);
}

static void
note_job(struct cmd_cell *cell, const struct json *job)
{
	static const enum cmd_cells_state states[] = {
	    [JOB_UNKNOWN] = CMD_CELLS_RUNNING,
	    [JOB_RUNNING] = CMD_CELLS_RUNNING,
	    [JOB_PAUSED] = CMD_CELLS_PAUSED,
	    [JOB_DONE] = CMD_CELLS_DONE,
	    [JOB_STOPPED] = CMD_CELLS_STOPPED,
	};
	enum cmd_cells_state state = states[states_job_find(json_string(json_get(job, "state")))];
	bool told = state == CMD_CELLS_PAUSED || state == CMD_CELLS_STOPPED;

	(void)json_u64(json_get(job, "rounds_committed"), &cell->rounds);
	note(cell, state, told ? json_string(json_get(job, "reason")) : NULL);
}

static enum err
mark_name(struct json **document, char name[GRID_NAME_MAX], const char *mark)
{
	char marked[GRID_NAME_MAX];

	snprintf(
	    marked, sizeof(marked), "%.*s%s", (int)(GRID_NAME_MAX - 1 - strlen(mark)), name, mark);
	struct json *value = json_new_string(marked);
	enum err e = edit_put(document, "name", value, NULL);
	json_free(value);
	if (!e)
		memcpy(name, marked, sizeof(marked));
	return e;
}

/* `mark` ends the job's name; "": none. */
static enum err
document_text(struct sweep *s, size_t index, const char *mark, struct buf *text, struct why *why)
{
	struct json *document = NULL;
	enum err e = grid_document(&document, &s->all.grid, index, s->base, s->prefix, why);

	if (!e && *mark)
		e = mark_name(&document, s->all.cells[index].name, mark);
	if (e) {
		json_free(document);
		return e;
	}
	e = json_print(text, document, true);
	if (!e)
		e = buf_append(text, "\n", 1);
	json_free(document);
	return e ? err_set(why, e, "a document cannot be written: %s", err_name(e))
		 : preset_expand(&text->data, &text->len, why);
}

/* What concerns the submitter and not the document ends the sweep. */
static bool
ends_all(enum err e)
{
	return e == ERR_CLOSED || e == ERR_DENIED || e == ERR_NOMEM || e == ERR_CORRUPT;
}

/* Whose sweep this is, in a few digits. */
static enum err
learn_mark(struct sweep *s, struct why *why)
{
	struct json *status = NULL;

	if (*s->mark)
		return ERR_OK;
	enum err e = cmd_admin_call(&s->a, "GET", "/v1/status", NULL, &status, why);
	const char *owner = json_string(json_get(json_get(status, "you"), "owner"));
	if (!e)
		snprintf(s->mark, sizeof(s->mark), ".%.8s", owner ? owner : "host");
	json_free(status);
	return e;
}

/* Somebody else's job of the same document, which two who follow one example both write, is no cell of this sweep: then the name
 * says whose it is. */
static enum err
submit(struct sweep *s, size_t index, struct buf *text, struct json **job, struct why *why)
{
	enum err e = document_text(s, index, "", text, why);

	if (!e)
		e = cmd_body_document(&s->a, "/v1/jobs", buf_str(text), text->len, job, why);
	if (s->a.problem != PROBLEM_FOREIGN_JOB)
		return e;
	e = learn_mark(s, why);
	buf_deinit(text);
	buf_init(text, JOB_DOCUMENT_MAX);
	if (!e)
		e = document_text(s, index, s->mark, text, why);
	return e ? e : cmd_body_document(&s->a, "/v1/jobs", buf_str(text), text->len, job, why);
}

/* A job of the same document is the same job: one that was begun earlier goes on, or is over at once. */
static enum err
begin(struct sweep *s, size_t index, struct why *why)
{
	struct cmd_cell *cell = &s->all.cells[index];
	struct json *job = NULL;
	struct buf text;

	buf_init(&text, JOB_DOCUMENT_MAX);
	enum err e = submit(s, index, &text, &job, why);
	const char *id = json_string(json_get(job, "job"));
	if (!e && (!id || strlen(id) != 32))
		e = err_set(why, ERR_CORRUPT, "what came is no job");
	if (!e) {
		memcpy(cell->id, id, 33);
		if (!s->warned)
			cmd_submit_warn(buf_str(&text), text.len, job);
		s->warned = true;
		note_job(cell, job);
	} else if (!ends_all(e)) {
		note(cell, CMD_CELLS_REFUSED, why->text);
		e = ERR_OK;
	}
	json_free(job);
	buf_deinit(&text);
	return e;
}

static enum err
look(struct sweep *s, struct cmd_cell *cell, struct why *why)
{
	struct json *job = NULL;
	enum err e = cmd_rounds_job(&s->a, cell->id, &job, why);

	if (e == ERR_NOTFOUND) {
		note(cell, CMD_CELLS_STOPPED, "the job was deleted");
		return ERR_OK;
	}
	if (!e)
		note_job(cell, job);
	json_free(job);
	return e;
}

/* Looks at what runs, and begins what has room. */
static enum err
turn(struct sweep *s, struct why *why)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < s->all.grid.cells && !e; i++) {
		struct cmd_cell *cell = &s->all.cells[i];
		if (cell->state == CMD_CELLS_RUNNING || cell->state == CMD_CELLS_PAUSED)
			e = look(s, cell, why);
	}
	for (size_t i = 0; i < s->all.grid.cells && !e; i++)
		if (s->all.cells[i].state == CMD_CELLS_WAITING &&
		    cmd_cells_count(&s->all, CMD_CELLS_RUNNING) < s->parallel)
			e = begin(s, i, why);
	return e;
}

/* Until a job has changed; not for long. True: somebody wants the command to end. The signals are blocked, and taken nowhere else. */
static bool
wait_or_end(struct sweep *s, const sigset_t *signals)
{
	static const struct cmd_changed_pause pause = {.poll_ms = 300, .most_s = 1};
	const struct timespec now = {0, 0};

	cmd_changed_wait(&s->a, &s->changed, s->contact.away, &pause);
	return sigtimedwait(signals, NULL, &now) > 0;
}

static void
say_how_to_go_on(const struct sweep *s)
{
	cmd_print_error("%zu jobs run on, %zu are not begun; the same command goes on from here "
			"(rivulet job stop NAME ends a job)",
	    cmd_cells_count(&s->all, CMD_CELLS_RUNNING),
	    cmd_cells_count(&s->all, CMD_CELLS_WAITING));
}

/* A paused job takes no place, and is not waited for. */
static enum err
sweep(struct sweep *s, bool *ended, struct why *why)
{
	struct sigaction before;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	/* A shell's job in the background ignores Ctrl-C. */
	if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	for (;;) {
		enum err e = cmd_contact_note(&s->contact, turn(s, why), why);
		if (e)
			return e;
		bool busy = cmd_cells_count(&s->all, CMD_CELLS_RUNNING) > 0 ||
		    cmd_cells_count(&s->all, CMD_CELLS_WAITING) > 0;
		if (!busy && !s->contact.away)
			return ERR_OK;
		if (wait_or_end(s, &signals)) {
			*ended = true;
			return ERR_OK;
		}
	}
}

static enum err
prepare(struct sweep *s, const char *path, const struct option_words *sets, struct why *why)
{
	enum err e = preset_read_base(path, &s->base, why);

	for (size_t i = 0; i < sets->count && !e; i++)
		e = grid_add(&s->all.grid, sets->words[i], why);
	if (e)
		return e;
	const char *name = json_string(json_get(s->base, "name"));
	snprintf(s->own_prefix, sizeof(s->own_prefix), "%.40s-", name ? name : "");
	s->prefix = s->prefix ? s->prefix : s->own_prefix;
	s->all.cells = calloc(s->all.grid.cells, sizeof(*s->all.cells));
	if (!s->all.cells)
		return err_set(why, ERR_NOMEM, "no memory");
	for (size_t i = 0; i < s->all.grid.cells; i++)
		grid_name(s->all.cells[i].name, &s->all.grid, i, s->prefix);
	/* A document that cannot be made is found before the first job runs. */
	struct json *document = NULL;
	e = grid_document(&document, &s->all.grid, 0, s->base, s->prefix, why);
	json_free(document);
	return e;
}

static enum err
run(struct sweep *s, bool *ended, struct why *why)
{
	enum err e = sweep(s, ended, why);

	if (e || *ended) {
		if (s->contact.met)
			say_how_to_go_on(s);
		return e;
	}
	e = cmd_cells_rank(&s->all, &s->a, why);
	return e ? e : cmd_cells_print(&s->all, s->a.json, why);
}

static int
end(struct sweep *s, enum err e, bool ended, const struct why *why)
{
	bool all = s->all.cells && cmd_cells_count(&s->all, CMD_CELLS_DONE) == s->all.grid.cells;

	grid_deinit(&s->all.grid);
	free(s->all.cells);
	json_free(s->base);
	int rc = cmd_admin_end(&s->a, e, why);
	if (e)
		return rc;
	return ended ? CMD_INTERRUPTED : all ? CMD_OK : CMD_FAILED;
}

int
cmd_sweep_main(int argc, char **argv)
{
	struct sweep s = {.parallel = 1};
	const char *set = NULL, *parallel = NULL;
	const struct option_entry table[] = {
	    {"set", 's', "PATH=A,B,...", "values of a list of the grid, any number of times", &set,
		NULL},
	    {"parallel", 'j', "N", "how many jobs at once (default 1)", &parallel, NULL},
	    {"prefix", 0, "TEXT", "how the jobs' names begin (default: the document's name)",
		&s.prefix, NULL},
	    CMD_ADMIN_OPTIONS(&s.a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "job sweep FILE --set PATH=A,B,... [--set ...] [--parallel "
	    "N] [--prefix TEXT] " CMD_ADMIN_USAGE,
	    "Submits a job for each combination of the values (at most 1000), waits for them and "
	    "ranks them by their monitor.\nThe same command again goes on where one was ended: "
	    "Ctrl-C leaves the jobs as they are.\n"
	    "Exit codes: 0 all jobs are done, 1 some were refused, stopped or paused, 130 ended "
	    "by Ctrl-C.",
	    1, 1};
	struct option_words words, sets;
	struct why why = {""};
	bool ended = false;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (parallel && (!num_u64(parallel, PARALLEL_MAX, &s.parallel) || s.parallel == 0)) {
		cmd_print_error("--parallel wants a number from 1 to %d", PARALLEL_MAX);
		return CMD_USAGE;
	}
	grid_init(&s.all.grid);
	enum err e = option_all(&sets, table, "set", argc, argv, &why);
	if (!e)
		e = prepare(&s, words.words[0], &sets, &why);
	if (!e)
		e = cmd_admin_open(&s.a, &why);
	if (!e)
		e = run(&s, &ended, &why);
	return end(&s, e, ended, &why);
}
