#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bytes.h"
#include "check_inside.h"
#include "hash.h"
#include "hex.h"
#include "inspect.h"
#include "metric_rows.h"
#include "override.h"
#include "rate_control_rows.h"
#include "store.h"
#include "wal.h"

#define DATABASE "rivulet.db"

void
check_rows_deinit(struct check_rows *rows)
{
	free(rows->jobs);
	free(rows->models);
	free(rows->deltas);
	*rows = (struct check_rows){.jobs = NULL};
}

/* --- one job's rounds */

struct walk {
	struct check *c;
	struct check_job *job;
	uint64_t expected; /* number of the next round */
	const struct store_round *round; /* the round whose deltas are checked */
	char where[80];
};

/* Is the manifest's base that of its task's round, which may be an earlier one? */
static bool
is_base(const struct walk *w, const struct manifest *m)
{
	struct store_round r = *w->round;

	return (m->round == r.round || !store_round_get(w->c->db, r.job, m->round, &r)) &&
	    memcmp(m->base, r.base, 32) == 0;
}

static const char *
manifest_fault(const struct store_accept *a, struct manifest *m)
{
	if (manifest_decode(m, a->manifest, sizeof(a->manifest), NULL))
		return "its manifest cannot be read";
	if (memcmp(m->job, a->job, 16) != 0 || m->round != a->round ||
	    memcmp(m->device, a->device, 32) != 0 || memcmp(m->task, a->task, 16) != 0)
		return "its manifest is of another job, round, device or task";
	return NULL;
}

static const char *
delta_fault(const struct walk *w, const struct store_accept *a, struct manifest *m,
    const struct check_row *row)
{
	const char *fault = manifest_fault(a, m);

	if (!fault && !is_base(w, m))
		fault = "its manifest names another base than its task's round";
	return fault ? fault : check_proofs_delta(w->c, a, m, row);
}

static enum err
see_delta(void *ctx, const struct store_accept *a)
{
	struct walk *w = ctx;
	struct check_rows *rows = &w->c->rows;
	char device[65], where[160];
	struct manifest m;

	hex_encode(device, a->device, 32);
	snprintf(where, sizeof(where), "%s device %.16s", w->where, device);
	const struct check_row row = {where, w->job->live && states_round_is_open(w->round->state),
	    store_inspect_proved(w->c->db), false};
	const char *fault = delta_fault(w, a, &m, &row);
	if (fault) {
		check_found(w->c, CHECK_ROW_DAMAGED, where, false, "%s", fault);
		return ERR_OK;
	}
	if (!w->job->live || w->round->state != OUTCOME_OPEN)
		return ERR_OK;
	struct check_delta *grown =
	    bytes_grow(rows->deltas, rows->delta_count, &rows->delta_room, sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	rows->deltas = grown;
	struct check_delta *d = &rows->deltas[rows->delta_count++];
	*d = (struct check_delta){.job = w->job, .row = *a, .manifest = m};
	d->row.report = NULL;
	return ERR_OK;
}

static enum err
see_round(void *ctx, const struct store_round *r)
{
	struct walk *w = ctx;
	bool open = states_round_is_open(r->state);

	snprintf(w->where, sizeof(w->where), "job %s round %llu", w->job->hex,
	    (unsigned long long)r->round);
	if (r->round != w->expected)
		check_found(w->c, CHECK_ROUND_DAMAGED, w->where, false,
		    "the round before it is missing: %llu was expected",
		    (unsigned long long)w->expected);
	if (w->job->open)
		check_found(w->c, CHECK_ROUND_DAMAGED, w->where, false,
		    "it follows a round that is still open");
	const char *fault = check_proofs_round(w->c, r);
	if (fault)
		check_found(w->c, CHECK_ROUND_DAMAGED, w->where, false, "%s", fault);
	w->expected = r->round + 1;
	w->job->last = *r;
	w->job->open = open;
	w->round = r;
	/* With those that it has for the next one. */
	return open ? store_accept_waiting(w->c->db, r->job, r->round, see_delta, w)
		    : store_accept_each(w->c->db, r->job, r->round, see_delta, w);
}

/* The fault of an evaluator's report. A report on another model than the round came to is of no use, but no fault. */
static const char *
evaluation_fault(struct check *c, const struct store_accept *a, struct check_row *row)
{
	struct store_round r;
	struct manifest m;
	const char *fault = manifest_fault(a, &m);

	if (fault)
		return fault;
	const enum err e = store_round_get(c->db, a->job, a->round, &r);
	if (e)
		return e == ERR_NOTFOUND ? "its job has no such round" : "its round cannot be read";
	if (r.evaluate.known && memcmp(m.base, r.model, 32) != 0)
		return "its manifest names another model than its round, which has its figure";
	row->open = states_round_is_open(r.state);
	return check_proofs_delta(c, a, &m, row);
}

static enum err
see_evaluation(void *ctx, const struct store_accept *a)
{
	struct check *c = ctx;
	char job[33], where[80];

	hex_encode(job, a->job, 16);
	snprintf(where, sizeof(where), "job %s round %llu evaluation", job,
	    (unsigned long long)a->round);
	struct check_row row = {where, false, store_inspect_proved(c->db), true};
	const char *fault = evaluation_fault(c, a, &row);
	if (fault)
		check_found(c, CHECK_ROW_DAMAGED, where, false, "%s", fault);
	return ERR_OK;
}

/* --- jobs and models */

static void
judge_document(struct check *c, const struct store_job *j, const char *where)
{
	struct job_spec spec;
	struct why why = {""};
	uint8_t hash[HASH_LEN];

	hash_sha256(hash, j->document, j->document_len);
	if (memcmp(hash, j->id, 16) != 0)
		check_found(c, CHECK_JOB_DAMAGED, where, false,
		    "its document is not the one that was submitted: the hash differs");
	else if (job_parse(&spec, j->document, j->document_len, &why))
		check_found(c, CHECK_JOB_DAMAGED, where, false, "its document cannot be read: %s",
		    why.text);
	else
		job_deinit(&spec);
}

static enum err
judge_overrides(struct check *c, const struct store_job *j, const char *where)
{
	struct override_set set;
	struct why why = {""};
	char *text = NULL;

	enum err e = store_override_get(c->db, j->id, &text);
	if (!e && override_parse(&set, text, strlen(text), &why))
		check_found(c, CHECK_JOB_DAMAGED, where, false,
		    "what was set of it cannot be read: %s", why.text);
	free(text);
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
judge_stamp(struct check *c, const struct store_job *j, const char *where)
{
	struct job_stamp stamp;
	struct why why = {""};
	char *text = NULL;

	enum err e = store_stamp_get(c->db, j->id, &text);
	if (!e && job_stamp_parse(&stamp, text, strlen(text), &why))
		check_found(c, CHECK_JOB_DAMAGED, where, false,
		    "the defaults noted beside it cannot be read: %s", why.text);
	free(text);
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
see_job(void *ctx, const struct store_job *j)
{
	struct check *c = ctx;
	struct check_rows *rows = &c->rows;
	char where[40];

	struct check_job *grown =
	    bytes_grow(rows->jobs, rows->job_count, &rows->job_room, sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	rows->jobs = grown;
	struct check_job *job = &rows->jobs[rows->job_count++];
	*job = (struct check_job){.live = states_job_lives(j->state)};
	memcpy(job->id, j->id, 16);
	hex_encode(job->hex, j->id, 16);
	snprintf(where, sizeof(where), "job %s", job->hex);
	judge_document(c, j, where);
	/* One that cannot be read holds nothing, and was reported. */
	if (rate_control_rows_of(c->db, j, &job->schedule))
		job->schedule = rate_control_start();
	enum err e = judge_overrides(c, j, where);
	e = e ? e : judge_stamp(c, j, where);
	return e ? e : metric_rows_best(c->db, job->id, &job->best);
}

static enum err
see_model(void *ctx, const struct store_model *m)
{
	struct check_rows *rows = ctx;

	struct store_model *grown =
	    bytes_grow(rows->models, rows->model_count, &rows->model_room, sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	rows->models = grown;
	rows->models[rows->model_count++] = *m;
	return ERR_OK;
}

static enum err
see_rounds(struct check *c, struct check_job *job)
{
	struct walk w = {.c = c, .job = job, .expected = 1};
	char where[40];

	enum err e = store_round_each(c->db, job->id, 1, INT64_MAX, see_round, &w);
	snprintf(where, sizeof(where), "job %s", job->hex);
	if (e == ERR_CORRUPT) {
		check_found(c, CHECK_ROUND_DAMAGED, where, false, "a round cannot be read: %s",
		    *store_inspect_why(c->db) ? store_inspect_why(c->db) : err_name(e));
		return ERR_OK;
	}
	if (!e && w.expected == 1)
		check_found(c, CHECK_ROUND_DAMAGED, where, false, "it has no round");
	else if (!e && job->live && !job->open)
		check_found(
		    c, CHECK_ROUND_DAMAGED, where, false, "it is not over, and has no open round");
	return e;
}

static void
read_rows(struct check *c)
{
	uint64_t copied = 0;

	enum err e = store_job_each(c->db, see_job, c);
	/* The jobs' array moves no more: deltas point into it. */
	for (size_t i = 0; i < c->rows.job_count && !e; i++)
		e = see_rounds(c, &c->rows.jobs[i]);
	for (size_t i = 0; i < c->rows.job_count && !e; i++)
		e = store_evaluation_each(c->db, c->rows.jobs[i].id, see_evaluation, c);
	if (!e)
		e = store_model_each(c->db, see_model, &c->rows);
	if (!e)
		e = check_proofs_devices(c);
	if (e)
		check_found(c, CHECK_ROW_DAMAGED, DATABASE, false, "rows cannot be read: %s",
		    *store_inspect_why(c->db) ? store_inspect_why(c->db) : err_name(e));
	c->has_rows = !e;
	if (store_meta_get(c->db, "backup", &copied) == ERR_OK && copied > 0)
		check_found(c, CHECK_BACKUP_COPY, DATABASE, false,
		    "this is a copy made by rivuletd backup");
}

/* --- the file */

static void
see_fault(void *ctx, const char *line)
{
	check_found(ctx, CHECK_DATABASE_DAMAGED, DATABASE, false, "%.200s", line);
}

static void
see_sum(void *ctx, const char *table, const char *row)
{
	char where[256];

	snprintf(where, sizeof(where), "%s %s", table, row);
	check_found(ctx, CHECK_ROW_DAMAGED, where, false,
	    "it is not what was written: its checksum differs");
}

static void
judge_sums(struct check *c)
{
	struct why why = {""};
	uint64_t missing = 0;

	if (store_inspect_sums(c->db, see_sum, c, &missing, &why))
		check_found(c, CHECK_DATABASE_DAMAGED, DATABASE, false, "%s", why.text);
	if (missing > 0)
		check_found(c, CHECK_ROW_UNSUMMED, DATABASE, false,
		    "%llu rows have no checksum yet", (unsigned long long)missing);
}

/* Checks pages, references, schema and header of the file. */
static void
judge_file(struct check *c, uint64_t version)
{
	char path[CHECK_PATH_MAX];
	struct why why = {""};

	check_path(c, DATABASE, path);
	enum err e = store_inspect_header(path, &why);
	e = e ? e : store_inspect_faults(c->db, see_fault, c, &why);
	e = e ? e : store_inspect_schema(c->db, version, &why);
	if (e)
		check_found(c, CHECK_DATABASE_DAMAGED, DATABASE, false, "%s", why.text);
}

static bool
open_database(struct check *c)
{
	char path[CHECK_PATH_MAX];
	uint64_t version = 0;
	struct why why = {""};

	check_path(c, DATABASE, path);
	enum err e = store_inspect_open(&c->db, path, c->repair, &version, &why);
	if (e) {
		check_found(c,
		    e == ERR_NOTFOUND	       ? CHECK_DATABASE_MISSING
			: e == ERR_UNSUPPORTED ? CHECK_DATABASE_NEWER
					       : CHECK_DATABASE_DAMAGED,
		    DATABASE, false, "%s", why.text);
		return false;
	}
	if (version == store_inspect_known()) {
		judge_file(c, version);
		return c->left[CHECK_DAMAGE] == 0;
	}
	if (version == 0) {
		check_found(c, CHECK_DATABASE_MISSING, DATABASE, false, "it is empty");
		return false;
	}
	judge_file(c, version);
	check_found(c, CHECK_DATABASE_OLDER, DATABASE, false,
	    "it is of version %llu, this program's is %llu; its rows were not examined",
	    (unsigned long long)version, (unsigned long long)store_inspect_known());
	return false;
}

/* Checks SQLite's log, but not while a coordinator runs, since the log changes while it is read. */
static bool
log_is_sound(struct check *c)
{
	char path[CHECK_PATH_MAX];
	struct why why = {""};
	bool torn = false;

	if (c->running)
		return true;
	check_path(c, DATABASE "-wal", path);
	if (store_wal_check(path, &torn, &why)) {
		check_found(c, CHECK_LOG_DAMAGED, DATABASE "-wal", false, "%s", why.text);
		return false;
	}
	if (torn)
		check_found(
		    c, CHECK_LOG_TORN, DATABASE "-wal", false, "its last commit does not check");
	return true;
}

void
check_rows_run(struct check *c)
{
	struct why why = {""};

	check_proofs_begin(c);
	/* Opening would make SQLite pass over the damage, and repairing would make that final. */
	if (!log_is_sound(c) || !open_database(c))
		return;
	enum err e = store_inspect_begin(c->db, false, &why);
	if (e)
		check_found(c, CHECK_DATABASE_DAMAGED, DATABASE, false, "%s", why.text);
	else {
		judge_sums(c);
		read_rows(c);
	}
	store_inspect_rollback(c->db);
}
