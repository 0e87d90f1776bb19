#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hex.h"
#include "jobs_inside.h"
#include "json.h"
#include "log.h"
#include "metric_rows.h"
#include "models.h"
#include "past_rows.h"
#include "spool.h"
#include "stop.h"
#include "store.h"
#include "wake.h"

/* Jobs as their documents and rows say: at the start, and one that was set aside once what it lacked is there. */

static enum err
read_document(struct job *j, const char *text, size_t len, struct why *why)
{
	struct job_work *w = j->work;

	w->schedule = rate_control_start();
	w->stamp.normalise_max = -1;
	enum err e = job_parse(&w->spec, text, len, why);
	if (e)
		return e;
	/* The coordinator never looks at the names of classes. */
	json_free(w->spec.recipe.data.classes);
	w->spec.recipe.data.classes = NULL;
	memcpy(change_facts(j)->name, w->spec.name, sizeof(j->facts.name));
	change_facts(j)->priority = w->spec.priority;
	change_facts(j)->only_evaluates = w->spec.only_evaluates;
	change_facts(j)->is_guarded = w->spec.guard.on;
	change_facts(j)->monitor = w->spec.monitor;
	change_facts(j)->keep = w->spec.keep;
	override_terms(&w->terms, &w->spec, &w->overrides);
	j->member.priority = w->terms.priority;
	j->member.share = w->terms.share;
	const struct round_policy policy = terms_policy(j, w->spec.only_evaluates);
	round_init(&change_facts(j)->round, &policy, 0);
	enum err late = jobs_late_init(j);
	return late ? late : jobs_variate_init(j);
}

enum err
jobs_read(struct job **out, const uint8_t id[16], const char *text, size_t len, struct why *why)
{
	struct job *j = job_blank(id);

	if (j)
		change_facts(j)->work = j->work = calloc(1, sizeof(*j->work));
	enum err e =
	    j && j->work ? read_document(j, text, len, why) : err_set(why, ERR_NOMEM, "no memory");
	if (e)
		job_free(j);
	else
		*out = j;
	return e;
}

struct loader {
	struct engine *g;
	struct store_db *db;
	struct job *job;
	struct why *why;
	struct engine_lack lack; /* the file that the job cannot be loaded for */
	uint32_t accepted, early, failed;
};

static enum err
lacks(struct loader *l, enum engine_lack_kind kind, const void *id, size_t len, enum err e)
{
	if (e) {
		l->lack = (struct engine_lack){.kind = kind};
		memcpy(l->lack.id, id, len);
	}
	return e;
}

/* A delta in the open round, or for the next one; or an evaluation's report. */
static enum err
count_accept(struct loader *l, const struct store_accept *a)
{
	const struct roster_event found = {
	    .kind = ROSTER_FOUND, .round = a->round, .folded = a->folded};
	struct job *j = l->job;
	struct invite *v = invites_hold(j, a->device);

	if (!v)
		return ERR_NOMEM;
	(void)invites_happens(j, v, &found);
	if (a->folded > j->facts.row.round && !job_evaluates(j)) {
		l->early++;
	} else {
		l->accepted++;
		change_facts(j)->bytes_up += job_evaluates(j) ? 0 : a->body_bytes;
	}
	return ERR_OK;
}

static enum err
load_accept(void *ctx, const struct store_accept *a)
{
	struct loader *l = ctx;
	struct delta_file file;

	if (job_evaluates(l->job))
		return count_accept(l, a);
	enum err e = spool_read(jobs_uses(l->g).spool, a->task, a->manifest, &file, l->why);
	if (e) {
		log_event(LOG_LEVEL_ERROR, "spool.damaged", LOG_S("job", l->job->facts.hex),
		    LOG_U("round", a->round), LOG_S("why", l->why->text));
		return lacks(l, LACKS_DELTA, a->task, sizeof(a->task), e);
	}
	delta_file_close(&file);
	return count_accept(l, a);
}

/* The last figure there is: not every round has one. */
static enum err
load_metric(struct loader *l)
{
	struct job *j = l->job;
	enum evaluate_by by = j->work->spec.recipe.evaluate_by;
	struct store_round r;

	if (by == EVALUATE_NONE)
		return ERR_OK;
	enum err e = store_round_measured(l->db, j->facts.id, &r);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	change_facts(j)->metric = r.evaluate;
	const bool base = by == EVALUATE_DEVICES;
	change_facts(j)->metric_round = (base && r.measured > 0 ? r.measured : r.round) - base;
	return ERR_OK;
}

/* Was this round committed as failed? Counted from the newest backwards: the third in a row paused the job, and the count began
 * anew. */
static bool
failed(struct loader *l, uint64_t round)
{
	struct store_round r;

	return store_round_get(l->db, l->job->facts.id, round, &r) == ERR_OK &&
	    r.state == OUTCOME_FAILED;
}

/* A job that is over is only looked at: nothing is built of its model. */
static enum err
load_ended(struct loader *l)
{
	struct store_model model = {.bytes = 0};

	enum err e = store_model_get(l->db, l->job->facts.model, &model);
	change_facts(l->job)->model_bytes = model.bytes;
	(void)round_step(&change_facts(l->job)->round, ROUND_STOP, 0, 0);
	/* What is left of its states went before the engine was asked, as of no use. */
	jobs_drop_states(l->job);
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

/* What the open round of a live job starts from, and what it has. */
static enum err
load_open(struct loader *l)
{
	struct job *j = l->job;
	const struct store_round *r = &j->facts.row;
	const struct engine_uses u = jobs_uses(l->g);

	enum err e = jobs_variate_load(l->db, j);
	if (!e)
		e = lacks(l, LACKS_MODEL, j->facts.model, sizeof(j->facts.model),
		    jobs_take_table(&u, j, j->facts.model, l->why));
	if (!e && states_round_is_open(r->state))
		e = lacks(l, LACKS_STATE, r->optimizer_state, sizeof(r->optimizer_state),
		    models_state_check(jobs_uses(l->g).models, r->optimizer_state, l->why));
	if (e || !states_round_is_open(r->state)) {
		(void)round_step(&change_facts(j)->round, ROUND_STOP, 0, 0);
		return e;
	}
	l->accepted = l->early = l->failed = 0;
	for (uint64_t n = r->round - 1; n > 0 && failed(l, n); n--)
		l->failed++;
	e = store_accept_waiting(l->db, j->facts.id, r->round, load_accept, l);
	if (!e)
		e = jobs_late_load(l->db, j);
	if (!e)
		e = jobs_late_load_out(l->g, l->db, j);
	if (!e)
		e = jobs_rest_load(l->db, j);
	if (!e && j->facts.round.policy.buffered)
		e = store_round_last_measured(l->db, j->facts.id, &change_facts(j)->measured);
	if (!e && j->work->spec.recipe.local.unit == LOCAL_SIZED)
		e = speeds_load(&j->work->speeds, l->db, r);
	if (e)
		return e;
	const struct round_policy policy = terms_policy(j, job_evaluates(j));
	round_init(&change_facts(j)->round, &policy, l->failed);
	/* Without a guard no rows were read for it, and no round went back. */
	if (!rate_control_matters(&j->work->spec))
		j->work->schedule.base_round = r->round - 1 - l->failed;
	jobs_difference_load(u.models, j);
	j->pace.loaded = l->accepted;
	j->pace.early = l->early;
	if (j->work->terms.stop.reports > 0)
		e = store_round_reports(
		    l->db, j->facts.id, 1, r->round - 1, &change_facts(j)->reports);
	return e ? e : jobs_share_load(l->db, j);
}

/* State of a job from its newest round: the open one, or the last one of a job that is over. */
static enum err
load_rounds(struct loader *l)
{
	struct job *j = l->job;
	struct store_round *r = &change_facts(j)->row;

	enum err e = store_round_last(l->db, j->facts.id, r);
	if (e)
		return e;
	bool open = states_round_is_open(r->state);
	memcpy(change_facts(j)->model, open ? r->base : r->model, 32);
	change_facts(j)->rounds_committed =
	    open || r->state == OUTCOME_EVALUATED ? r->round - 1 : r->round;
	e = load_metric(l);
	if (!e)
		e = jobs_guard_load(l->db, j);
	if (e)
		return e;
	return states_job_lives(j->facts.state) ? load_open(l) : load_ended(l);
}

/* A job whose files are missing or damaged waits, in memory only, for its file or a person; the others go on. */
static void
set_aside(struct loader *l)
{
	struct job *j = l->job;

	log_event(LOG_LEVEL_ERROR, "job.damaged", LOG_S("job", j->facts.hex),
	    LOG_S("name", j->facts.name), LOG_S("why", l->why->text));
	if (states_job_lives(j->facts.state))
		jobs_note_state(l->g, j, JOB_PAUSED, l->why->text);
	(void)round_step(&change_facts(j)->round, ROUND_STOP, 0, 0);
	change_facts(j)->aside = true;
	if (states_job_lives(j->facts.state))
		jobs_lack_is(l->g, j, &l->lack);
}

/* A document is named by its hash: one changed bit would train something else under the old name. */
static enum err
check_document(const struct store_job *row, struct why *why)
{
	uint8_t hash[HASH_LEN];
	char hex[33];

	hash_sha256(hash, row->document, row->document_len);
	if (memcmp(hash, row->id, sizeof(row->id)) == 0)
		return ERR_OK;
	hex_encode(hex, row->id, sizeof(row->id));
	return err_set(
	    why, ERR_CORRUPT, "the document of job %s is not the one that was submitted", hex);
}

/* Of the job alone, and not of the machine. A disk that does not give one file may give all others. */
static bool
is_jobs(const struct loader *l, enum err e)
{
	return e == ERR_NOTFOUND || e == ERR_CORRUPT || e == ERR_UNSUPPORTED ||
	    (l->lack.kind && (e == ERR_DENIED || e == ERR_IO));
}

/* A document or row that cannot be read is an error of the whole start: nothing is lost silently. */
static enum err
load_row(struct loader *l, const struct store_job *row)
{
	struct job *j = NULL;

	enum err e = check_document(row, l->why);
	if (!e)
		e = jobs_read(&j, row->id, row->document, row->document_len, l->why);
	if (e)
		return e;
	change_facts(j)->state = row->state;
	snprintf(change_facts(j)->reason, sizeof(j->facts.reason), "%s", row->reason);
	change_facts(j)->created_at = row->created_at;
	change_facts(j)->ended_at = row->ended_at;
	memcpy(change_facts(j)->owner, row->owner, sizeof(j->facts.owner));
	l->job = j;
	l->lack = (struct engine_lack){.kind = LACKS_NOTHING};
	l->why->text[0] = '\0';
	e = terms_load(l->g, l->db, j, l->why);
	if (!e)
		e = load_rounds(l);
	if (is_jobs(l, e)) {
		if (!l->why->text[0])
			err_set(l->why, e, "its rows: %s; see \"rivuletd check\"", err_name(e));
		set_aside(l);
		e = ERR_OK;
	}
	if (e)
		job_free(j);
	return e;
}

static enum err
load_document(struct loader *l, const uint8_t id[16])
{
	struct store_job row = {.document = NULL};

	enum err e = store_job_get(l->db, id, &row);
	if (!e)
		e = load_row(l, &row);
	free(row.document);
	return e;
}

static enum err
load_past(struct loader *l, const uint8_t id[16])
{
	struct store_past row;

	enum err e = store_past_get(l->db, id, &row);
	if (!e)
		e = jobs_past_new(&l->job, &row);
	return e ? e : metric_rows_best(l->db, id, &change_facts(l->job)->best);
}

static enum err
load_job(void *ctx, const struct store_job_brief *brief)
{
	struct loader *l = ctx;

	if (stop_asked(jobs_uses(l->g).stop))
		return err_set(l->why, ERR_CLOSED, "the coordinator stops");
	enum err e = brief->past ? load_past(l, brief->id) : load_document(l, brief->id);
	if (e)
		return e;
	l->g->report.jobs[l->job->facts.state]++;
	jobs_link(l->g, l->job);
	jobs_shrink(l->g, l->job);
	return ERR_OK;
}

static enum err
load_all(struct store_db *db, void *arg, struct why *why)
{
	struct loader *l = arg;

	l->db = db;
	l->why = why;
	return store_job_brief_each(db, load_job, l);
}

/* --- once more, when what a job was set aside for is there */

struct again {
	struct loader *l;
	const uint8_t *id;
};

static enum err
load_again(struct store_db *db, void *arg, struct why *why)
{
	const struct again *a = arg;

	a->l->db = db;
	a->l->why = why;
	return load_document(a->l, a->id);
}

/* Into an engine of its own. */
enum err
jobs_load_one(struct engine *g, const uint8_t id[16], struct job **out)
{
	struct engine *apart = calloc(1, sizeof(*apart));
	struct loader l = {.g = apart};
	struct why why = {""};

	if (!apart)
		return ERR_NOMEM;
	apart->services = g->services;
	memcpy(apart->task_key, g->task_key, sizeof(apart->task_key));
	lock_init(&apart->lock);
	tails_init(&apart->tails);
	enum err e = store_read(jobs_uses(g).store, load_again, &(struct again){&l, id}, &why);
	*out = l.job;
	jobs_free(apart);
	return e;
}

enum err
jobs_new(struct engine **out, const struct services *services, const uint8_t task_key[32],
    struct why *why)
{
	struct engine *g = calloc(1, sizeof(*g));
	struct loader l = {.g = g};

	if (!g)
		return err_set(why, ERR_NOMEM, "no memory");
	g->services = services;
	g->report.round_seconds.scale = g->report.report_seconds.scale =
	    g->report.evaluation_seconds.scale = HISTOGRAM_LONG;
	g->report.staleness_rounds.scale = HISTOGRAM_ROUNDS;
	memcpy(g->task_key, task_key, sizeof(g->task_key));
	lock_init(&g->lock);
	tails_init(&g->tails);
	enum err e = store_read(jobs_uses(g).store, load_all, &l, why);
	if (e) {
		jobs_free(g);
		return e;
	}
	jobs_change_begin(g);
	*out = g;
	return ERR_OK;
}
