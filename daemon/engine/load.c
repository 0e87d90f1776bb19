#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "clock.h"
#include "engine.h"
#include "engine_inside.h"
#include "evalset.h"
#include "hex.h"
#include "log.h"
#include "modelfile.h"
#include "models.h"
#include "net.h"
#include "spool.h"

/* --- making a job */

void
engine_job_free(struct engine_job *j)
{
	if (!j)
		return;
	job_deinit(&j->spec);
	tensor_table_deinit(&j->table);
	free(j->invites);
	free(j->candidates);
	free(j->members);
	free(j);
}

/* Within the configuration's limit for models. */
static enum err
make_net(const struct services *s, const struct recipe *r, struct net **out, struct why *why)
{
	const struct config *c = shared_take(s->config);
	uint64_t most = c->model_bytes;

	shared_give(s->config, c);
	return net_new(out, &r->net, r->data.class_count, 1, false, most, why);
}

/* The model of round 0, drawn from the seed, written to the model folder. */
static enum err
draw_model(const struct services *s, struct engine_job *j, uint8_t id[32], struct why *why)
{
	const struct recipe *r = &j->spec.recipe;
	struct modelfile_meta meta = {.round = 0};
	struct net *net = NULL;
	struct buf head;

	enum err e = make_net(s, r, &net, why);
	if (e)
		return e;
	net_init(net, j->spec.seed);
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	memcpy(meta.job, j->hex, sizeof(meta.job));
	const struct tensor_table *table = net_tensors(net);
	e = modelfile_header(&head, table, &meta);
	if (!e)
		e = models_put(
		    s->models, head.data, head.len, net_params(net), table->bytes, id, why);
	buf_deinit(&head);
	net_free(net);
	return e;
}

/* Checks that an init model is the one the layers describe. */
static enum err
check_layers(const struct services *s, const struct recipe *r, const struct tensor_table *table,
    struct why *why)
{
	struct net *net = NULL;

	enum err e = make_net(s, r, &net, why);
	if (!e && !tensor_table_same(net_tensors(net), table))
		e = err_set(
		    why, ERR_INVALID, "model.init does not have the tensors of model.layers");
	net_free(net);
	return e;
}

/* The model of round 0: drawn, or the uploaded one. A restart finds it by what round 1 started from. */
enum err
engine_first_model(const struct services *s, struct engine_job *j, uint8_t id[32], struct why *why)
{
	const struct recipe *r = &j->spec.recipe;

	if (!r->init[0])
		return draw_model(s, j, id, why);
	return hex_decode(id, 32, r->init, strlen(r->init))
	    ? ERR_OK
	    : err_set(why, ERR_INVALID, "model.init is not a model id");
}

/* Reads the base model's table and assigns the job's roles. */
enum err
engine_take_table(
    const struct services *s, struct engine_job *j, const uint8_t model[32], struct why *why)
{
	const struct recipe *r = &j->spec.recipe;
	struct models_map *map = NULL;

	enum err e = models_get(s->models, model, &map, why);
	if (e)
		return e;
	e = tensor_table_copy(&j->table, &map->table);
	if (!e)
		e = tensor_table_assign(&j->table, r->rules, r->rule_count, why);
	if (!e && r->net.layer_count > 0)
		e = check_layers(s, r, &map->table, why);
	if (!e && j->table.elements == 0)
		e = err_set(why, ERR_INVALID, "the model has no tensor to train");
	j->model_bytes = map->bytes;
	models_map_release(map);
	return e;
}

enum err
engine_job_new(struct engine_job **out, const struct services *services, const uint8_t id[16],
    const char *text, size_t len, struct why *why)
{
	struct engine_job *j = calloc(1, sizeof(*j));

	(void)services;
	if (!j)
		return err_set(why, ERR_NOMEM, "no memory");
	memcpy(j->id, id, 16);
	hex_encode(j->hex, id, 16);
	j->schedule = schedule_state_start();
	enum err e = job_parse(&j->spec, text, len, why);
	if (!e)
		e = engine_variate_init(j);
	if (e) {
		engine_job_free(j);
		return e;
	}
	const struct round_policy policy = round_policy(&j->spec.round);
	round_init(&j->round, &policy, 0);
	*out = j;
	return ERR_OK;
}

void
engine_job_link(struct engine *g, struct engine_job *j)
{
	struct engine_job **at = &g->jobs;

	/* Mostly the last: its priority is that of the others. */
	if (g->last && g->last->spec.priority >= j->spec.priority)
		at = &g->last->next;
	while (*at && (*at)->spec.priority >= j->spec.priority)
		at = &(*at)->next;
	j->next = *at;
	*at = j;
	if (!j->next)
		g->last = j;
	j->chain = g->buckets[j->id[0]];
	g->buckets[j->id[0]] = j;
	g->job_count++;
}

/* --- loading */

struct loader {
	struct engine *g;
	struct store_db *db;
	struct engine_job *job;
	struct why *why;
	uint32_t accepted, failed;
};

static enum err
load_accept(void *ctx, const struct store_accept *a)
{
	struct loader *l = ctx;
	struct delta_file file;

	enum err e = spool_read(l->g->services->spool, a->task, a->manifest, &file, l->why);
	if (e) {
		log_event(LOG_LEVEL_ERROR, "spool.damaged", LOG_S("job", l->job->hex),
		    LOG_U("round", a->round), LOG_S("why", l->why->text));
		return e;
	}
	delta_file_close(&file);
	l->accepted++;
	l->job->bytes_up += a->body_bytes;
	return engine_invite(l->job, a->device, INVITE_ACCEPTED);
}

static enum err
load_metric(void *ctx, const struct store_round *r)
{
	struct loader *l = ctx;

	if (r->evaluate.known) {
		l->job->metric = r->evaluate;
		l->job->metric_round =
		    r->round - (l->job->spec.recipe.evaluate_by == EVALUATE_DEVICES ? 1 : 0);
	}
	return ERR_OK;
}

/* Was this round committed as failed? Counted from the newest backwards: the third in a row paused the job, and the count began
 * anew. */
static bool
failed(struct loader *l, uint64_t round)
{
	struct store_round r;

	return store_round_get(l->db, l->job->id, round, &r) == ERR_OK && r.state == OUTCOME_FAILED;
}

/* State of a job from its newest round: the open one, or the last one of a job that is over. */
static enum err
load_rounds(struct loader *l)
{
	struct engine_job *j = l->job;
	struct store_round *r = &j->row;

	enum err e = store_round_last(l->db, j->id, r);
	if (e)
		return e;
	bool open = r->state == OUTCOME_OPEN, live = states_job_lives(j->state);
	memcpy(j->model, open ? r->base : r->model, 32);
	j->rounds_committed = open ? r->round - 1 : r->round;
	uint64_t from = r->round > 2 ? r->round - 2 : 1;
	e = store_round_each(l->db, j->id, from, 3, load_metric, l);
	if (e)
		return e;
	e = engine_schedule_load(l->db, j);
	if (!e)
		e = engine_variate_load(l->db, j);
	if (!e)
		e = engine_take_table(l->g->services, j, j->model, l->why);
	if (!e && open && live)
		e = models_state_check(l->g->services->models, r->optimizer_state, l->why);
	if (e || !open || !live) {
		engine_step(l->g, j, ROUND_STOP, 0);
		return e;
	}
	l->accepted = l->failed = 0;
	for (uint64_t n = r->round - 1; n > 0 && failed(l, n); n--)
		l->failed++;
	e = store_accept_each(l->db, j->id, r->round, load_accept, l);
	if (e)
		return e;
	round_init(&j->round, &j->round.policy, l->failed);
	engine_steps_load(l->g->services, j);
	j->loaded = l->accepted;
	return ERR_OK;
}

/* A job whose files are missing or damaged waits, in memory only, for a person; the others go on. */
static void
set_aside(struct loader *l)
{
	struct engine_job *j = l->job;

	log_event(LOG_LEVEL_ERROR, "job.damaged", LOG_S("job", j->hex), LOG_S("name", j->spec.name),
	    LOG_S("why", l->why->text));
	if (states_job_lives(j->state))
		engine_note_state(l->g, j, JOB_PAUSED, l->why->text);
	engine_step(l->g, j, ROUND_STOP, 0);
	j->aside = true;
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

/* A document or row that cannot be read is an error of the whole start: nothing is lost silently. */
static enum err
load_job(void *ctx, const struct store_job *row)
{
	struct loader *l = ctx;
	struct engine_job *j = NULL;

	enum err e = check_document(row, l->why);
	if (!e)
		e = engine_job_new(
		    &j, l->g->services, row->id, row->document, row->document_len, l->why);
	if (e)
		return e;
	j->state = row->state;
	l->g->report.jobs[j->state]++;
	snprintf(j->reason, sizeof(j->reason), "%s", row->reason);
	j->created_at = row->created_at;
	memcpy(j->owner, row->owner, sizeof(j->owner));
	l->job = j;
	e = load_rounds(l);
	if (e == ERR_NOTFOUND || e == ERR_CORRUPT || e == ERR_UNSUPPORTED) {
		set_aside(l);
		e = ERR_OK;
	}
	if (e) {
		engine_job_free(j);
		return e;
	}
	engine_job_link(l->g, j);
	return ERR_OK;
}

static enum err
load_all(struct store_db *db, void *arg, struct why *why)
{
	struct loader *l = arg;

	l->db = db;
	l->why = why;
	return store_job_each(db, load_job, l);
}

enum err
engine_new(struct engine **out, const struct services *services, const uint8_t task_key[32],
    struct why *why)
{
	struct engine *g = calloc(1, sizeof(*g));
	struct loader l = {.g = g};

	if (!g)
		return err_set(why, ERR_NOMEM, "no memory");
	g->services = services;
	memcpy(g->task_key, task_key, sizeof(g->task_key));
	lock_init(&g->lock);
	enum err e = store_read(services->store, load_all, &l, why);
	if (e) {
		engine_free(g);
		return e;
	}
	*out = g;
	return ERR_OK;
}

void
engine_free(struct engine *g)
{
	if (!g)
		return;
	while (g->jobs) {
		struct engine_job *j = g->jobs;
		g->jobs = j->next;
		engine_job_free(j);
	}
	lock_deinit(&g->lock);
	hash_wipe(g->task_key, sizeof(g->task_key));
	free(g);
}

void
engine_begin_open(struct engine *g, struct engine_job *j)
{
	if (j->state == JOB_PAUSED)
		engine_step(g, j, ROUND_PAUSE, 0);
	engine_step(g, j, ROUND_BEGIN, j->loaded);
}

void
engine_start(
    struct engine *g, enum err (*fold)(void *folder, const struct engine_fold *f), void *folder)
{
	unsigned seen = 0;

	lock_take(&g->lock);
	g->fold = fold;
	g->folder = folder;
	g->started = true;
	for (struct engine_job *j = g->jobs; j; j = engine_next(g, j, &seen))
		if (j->round.state == ROUND_IDLE)
			engine_begin_open(g, j);
	lock_release(&g->lock);
}

void
engine_stop(struct engine *g)
{
	lock_take(&g->lock);
	g->stopping = true;
	lock_release(&g->lock);
}
