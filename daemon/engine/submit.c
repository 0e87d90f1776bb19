#include <math.h>
#include <string.h>

#include "age.h"
#include "audit.h"
#include "config.h"
#include "engine_inside.h"
#include "evalset.h"
#include "evalsets.h"
#include "fault.h"
#include "hex.h"
#include "json.h"
#include "log.h"
#include "models.h"
#include "report.h"
#include "server_opt.h"
#include "shared.h"
#include "spoolfile.h"
#include "store.h"
#include "wake.h"

/* Submitting: a document becomes a job. */

struct submission {
	struct engine *g;
	struct job *made;
	struct engine_reservation *reservation;
	const char *by;
	const struct engine_spending *spending;
	struct store_job job;
	struct store_round first;
	struct store_model model;
};

/* The document is a detail, the last: a job may be meant for devices that it names. */
static enum err
audit_submission(struct store_db *db, const struct submission *s, struct why *why)
{
	const struct audit_item document = {NULL, s->job.document, s->job.document_len};
	struct json *facts = json_object(), *detail = s->by ? json_object() : NULL;
	char hex[65];

	hex_encode(hex, s->model.id, 32);
	json_add_string(facts, "model", hex);
	if (!job_stamp_is_empty(&job_facts(s->made)->work->stamp))
		json_add(facts, "defaults", job_stamp_json(&job_facts(s->made)->work->stamp));
	if (detail)
		json_add_string(detail, "by", s->by);
	return audit_append(db, jobs_services(s->g),
	    &(struct audit_event){.event = RECORD_JOB_SUBMITTED,
		.job = s->job.id,
		.facts = facts,
		.detail = detail,
		.items = &document,
		.item_count = 1},
	    why);
}

static enum err
no_init(struct why *why)
{
	return err_set(why, ERR_INVALID,
	    "model.init: there is no such model here: upload it; one that a round made is "
	    "no longer kept ([retention], the job's \"keep\")");
}

/* A model that a job names must outlive the job that made it. */
static enum err
pin_init(struct store_db *db, const struct recipe *r, const uint8_t owner[32], struct why *why)
{
	uint8_t id[32];

	if (!r->init[0])
		return ERR_OK;
	if (!hex_decode(id, sizeof(id), r->init, strlen(r->init)))
		return err_set(why, ERR_INVALID, "model.init is not a model id");
	enum err e = store_model_pin(db, id, owner);
	return e == ERR_NOTFOUND ? no_init(why) : e;
}

static enum err
write_submission(struct store_db *db, void *arg, struct why *why)
{
	struct submission *s = arg;

	enum err e = engine_owner_deleted(db, s->job.id, s->job.owner, why);
	if (!e)
		e = store_job_insert(db, &s->job);
	e = e ? e : terms_put_stamp(db, s->made);
	FAULT("job.row");
	if (!e)
		e = pin_init(db, &job_facts(s->made)->work->spec.recipe, s->job.owner, why);
	if (!e)
		e = models_still(jobs_uses(s->g).models, s->model.id, why);
	if (!e)
		e = store_model_put(db, &s->model);
	if (!e)
		e = store_round_put(db, &s->first);
	if (!e)
		e = engine_owner_written(jobs_uses(s->g).spent, db, s->spending);
	return e ? e : audit_submission(db, s, why);
}

/* On the store thread, after the commit: a command that comes next finds it. */
static void
begin_submitted(void *arg)
{
	const struct submission *s = arg;
	struct engine *g = s->g;
	struct job *j = s->made;

	jobs_begin(j, &s->job, &s->first, s->model.id);
	FAULT("job.committed");
	jobs_lock(g);
	jobs_counts(g)->jobs[job_facts(j)->state]++;
	jobs_link(g, j);
	engine_owner_end(g, s->reservation);
	rounds_begin_open(g, j);
	jobs_unlock(g);
	FAULT("job.begun");
}

static enum err
check_evaluation(const struct engine_uses *u, const struct job *j, struct why *why)
{
	if (job_facts(j)->work->spec.recipe.evaluate_by != EVALUATE_COORDINATOR)
		return ERR_OK;
	struct evalsets_use *sets = NULL;
	enum err e = evalsets_take(u->sets, u->config, &sets);
	if (!e)
		e = evalset_check(sets->set, &job_facts(j)->work->spec.recipe, why);
	evalsets_give(sets, u->config);
	return e == ERR_NOTFOUND ? ERR_INVALID : e;
}

/* A pattern that fits nothing was meant for something. */
static enum err
check_patterns(const struct job *j, struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	const struct recipe *r = &facts->work->spec.recipe;
	const struct tensor_rule *unused =
	    tensor_table_unused(&facts->work->table, r->rules, r->rule_count);

	if (!unused)
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "tensors: \"%.80s\" fits no tensor of the model, whose first is \"%.80s\"",
	    unused->pattern, facts->work->table.items[0].name);
}

static enum err
check_aggregate(const struct job_spec *spec, struct why *why)
{
	const struct aggregate_spec *a = &spec->aggregate;

	enum err e = terms_rule_takes(spec, &spec->round, why);
	if (e)
		return e;
	if (!server_opt_find(a->optimizer))
		return err_set(why, ERR_INVALID,
		    "aggregate.server_optimizer: \"%s\" is not an optimizer of this build",
		    a->optimizer);
	return ERR_OK;
}

/* A round that can never be in the spool whole would be abandoned again and again. */
static enum err
check_quota(const struct engine_uses *u, const struct job *j, struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	uint64_t quota = u->fixed->spool_quota;
	uint64_t one = sizes_payload(j);

	one = one > MANIFEST_PAYLOAD_MAX ? UINT64_MAX : spoolfile_bytes(one);
	if (facts->work->spec.only_evaluates || quota == 0 ||
	    one <= quota / facts->work->spec.round.goal)
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "round.goal: %u deltas of %llu bytes do not fit the spool's quota of %llu",
	    facts->work->spec.round.goal, (unsigned long long)one, (unsigned long long)quota);
}

static bool
is_init(const struct recipe *r, const uint8_t model[32])
{
	char hex[65];

	hex_encode(hex, model, 32);
	return strcmp(r->init, hex) == 0;
}

/* Once it is in the list, others may stop and delete it: what is said of it then was copied before. */
static enum err
write_out(struct submission *s, struct why *why)
{
	const struct job *j = s->made;
	uint64_t parameters = job_facts(j)->parameters;
	char name[sizeof(job_facts(j)->name)], hex[sizeof(job_facts(j)->hex)];

	memcpy(name, job_facts(j)->name, sizeof(name));
	memcpy(hex, job_facts(j)->hex, sizeof(hex));
	enum err e =
	    store_write_then(jobs_uses(s->g).store, write_submission, begin_submitted, s, why);
	if (!e)
		log_event(LOG_LEVEL_INFO, "job.submitted", LOG_S("job", hex), LOG_S("name", name),
		    LOG_U("parameters", parameters));
	return e;
}

/* Everything about a new job that can be wrong. Writes nothing. */
static enum err
check(struct engine *g, struct job *j, bool bounded, struct engine_reservation *r, struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	const struct engine_uses u = jobs_uses(g);

	FAULT("job.checked");
	enum err e = check_aggregate(&facts->work->spec, why);
	if (!e)
		e = job_check(&facts->work->spec, why);
	if (!e)
		e = check_evaluation(&u, j, why);
	if (!e)
		e = jobs_first_table(&u, j, why);
	if (!e)
		e = check_patterns(j, why);
	if (!e)
		e = check_quota(&u, j, why);
	if (!e)
		e = sizes_check_fold(&u, facts->work, why);
	if (!e)
		e = engine_owner_takes(g, j, bounded, r, why);
	return e == ERR_NOTFOUND ? no_init(why) : e;
}

/* On success it is durable, in the list, and its first round is open. */
static enum err
begin(struct engine *g, struct job *j, const struct engine_document *document,
    struct engine_reservation *r, struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	const struct engine_uses u = jobs_uses(g);
	uint8_t model[32];
	struct submission s = {.g = g,
	    .made = j,
	    .reservation = r,
	    .by = document->by,
	    .spending = document->spending,
	    .job = {.document = (char *)(uintptr_t)document->text,
		.document_len = document->len,
		.state = JOB_RUNNING,
		.created_at = age_latest(jobs_uses(g).age),
		.ended_at = NAN}};

	enum err e = jobs_first_model(&u, j, model, why);
	if (e)
		return e == ERR_NOTFOUND ? no_init(why) : e;
	memcpy(s.job.id, facts->id, 16);
	memcpy(s.job.owner, facts->owner, sizeof(s.job.owner));
	job_open_row(&s.first, j, 1, model);
	s.model = (struct store_model){.bytes = facts->model_bytes, .created_at = s.job.created_at};
	memcpy(s.model.id, model, 32);
	memcpy(s.model.job, facts->id, 16);
	FAULT("job.model");
	engine_owner_settle(g, r);
	e = write_out(&s, why);
	if (e && !is_init(&facts->work->spec.recipe, model))
		jobs_drop_leftover(u.store, u.models, model);
	return e;
}

struct claim {
	const uint8_t *id, *owner; /* of a document */
};

static enum err
not_deleted(struct store_db *db, void *arg, struct why *why)
{
	const struct claim *c = arg;

	return engine_owner_deleted(db, c->id, c->owner, why);
}

/* One that came to nothing. */
static void
discard(struct engine *g, struct job *j, struct engine_reservation *r)
{
	engine_owner_release(g, r);
	job_free(j);
}

/* Of a document that may become a job of this id: checked, in no list, without a model. NULL: it is a job already. ERR_EXISTS: of
 * another owner. */
static enum err
make(struct engine *g, const struct engine_document *document, const uint8_t id[16],
    struct engine_reservation *r, struct job **out, struct why *why)
{
	*out = NULL;
	*r = (struct engine_reservation){.asks = document->tried};
	enum err e = engine_owner_find(g, document, id, why);
	if (e != ERR_NOTFOUND)
		return e;
	e = job_bound(document->text, document->len, why);
	if (!e)
		e = store_read(
		    jobs_uses(g).store, not_deleted, &(struct claim){id, document->owner}, why);
	if (!e)
		e = jobs_read(out, id, document->text, document->len, why);
	if (!e) {
		terms_stamp(*out);
		jobs_set_owner(*out, document->owner);
		e = check(g, *out, document->bounded, r, why);
	}
	/* The same document was on its way, and has the place that this one was refused. */
	enum err now = e == ERR_DENIED ? engine_owner_find(g, document, id, why) : ERR_NOTFOUND;
	if (e) {
		discard(g, *out, r);
		*out = NULL;
	}
	return now != ERR_NOTFOUND ? now : e == ERR_LIMIT ? ERR_INVALID : e;
}

/* Another submission of the document, made at the same time, which is between its row and its place in the list perhaps. */
static enum err
won(struct engine *g, const struct engine_document *document, const uint8_t id[16], struct why *why)
{
	enum err e = engine_owner_find(g, document, id, why);

	return e == ERR_NOTFOUND ? ERR_OK : e;
}

enum err
engine_submit(struct engine *g, const struct engine_document *document, uint8_t id[16],
    bool *created, struct why *why)
{
	struct engine_reservation r;
	uint8_t digest[HASH_LEN];
	struct job *j;

	hash_sha256(digest, document->text, document->len);
	memcpy(id, digest, 16);
	*created = false;
	enum err e = make(g, document, id, &r, &j, why);
	if (e || !j) {
		job_free(j);
		return e;
	}
	e = begin(g, j, document, &r, why);
	if (e) {
		discard(g, j, &r);
		/* Two submissions of one document at once: the other one won. */
		return e == ERR_EXISTS ? won(g, document, id, why)
		    : e == ERR_LIMIT   ? ERR_INVALID
				       : e;
	}
	*created = true;
	wake_ring(jobs_uses(g).wake);
	return ERR_OK;
}

static void
forecast_new(struct engine *g, const struct job *j, struct engine_trial *out)
{
	const struct job_facts *facts = job_facts(j);
	const struct config *c = shared_take(jobs_uses(g).config);

	memcpy(out->job.id, facts->id, sizeof(out->job.id));
	memcpy(out->job.name, facts->name, sizeof(out->job.name));
	out->job.model_bytes = facts->model_bytes;
	out->job.parameters = facts->parameters;
	out->job.forecast = jobs_forecast(c, j);
	shared_give(jobs_uses(g).config, c);
	jobs_reach(g, j, &out->reach);
}

enum err
engine_try(struct engine *g, const struct engine_document *document, struct engine_trial *out,
    struct why *why)
{
	struct engine_document tried = *document;
	struct engine_reservation r;
	uint8_t digest[HASH_LEN];
	struct job *j;

	tried.tried = true;
	*out = (struct engine_trial){.exists = false};
	hash_sha256(digest, document->text, document->len);
	enum err e = make(g, &tried, digest, &r, &j, why);
	if (!e && !j) {
		out->exists = engine_job(g, digest, NULL, &out->job);
		(void)!engine_reach(g, digest, &out->reach);
	} else if (!e) {
		forecast_new(g, j, out);
	}
	discard(g, j, &r);
	return e;
}
