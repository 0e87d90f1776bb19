#include "history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "figure.h"
#include "guards.h"
#include "hex.h"
#include "json.h"
#include "late.h"
#include "override.h"
#include "sign.h"
#include "task_kind.h"

/* --- the record of a round */

/* An id that may be absent, which leaves zeros. */
static bool
get_id(const struct json *body, const char *key, uint8_t *out, size_t len)
{
	const char *text = json_string(json_get(body, key));

	memset(out, 0, len);
	return text ? hex_decode(out, len, text, strlen(text)) : !json_get(body, key);
}

static bool
get_word(const struct json *object, const char *key, char out[CMD_VERIFY_WORD])
{
	const char *text = json_string(json_get(object, key));
	size_t len = text ? strlen(text) : CMD_VERIFY_WORD;

	if (len >= CMD_VERIFY_WORD)
		return false;
	memcpy(out, text, len + 1);
	return true;
}

/* A number, or null for what JSON cannot say. */
static double
number(const struct json *v)
{
	double d;

	return json_double(v, &d) ? d : NAN;
}

/* How old its deltas may be: nothing said means that they are all of its own tasks. */
static bool
read_mode(struct cmd_verify_round *r, const struct json *b)
{
	const char *mode = json_string(json_get(b, "mode"));
	const struct json *staleness = json_get(b, "staleness");
	uint64_t oldest = 0;

	if (json_get(b, "max_staleness") &&
	    (!json_u64(json_get(b, "max_staleness"), &oldest) || oldest > JOB_STALENESS_MAX))
		return false;
	r->max_staleness = (uint32_t)oldest;
	r->buffered = mode && strcmp(mode, job_round_mode(ROUND_MODE_BUFFERED)) == 0;
	return oldest == 0 ||
	    (job_find_weight(json_string(json_get(staleness, "weight")), &r->weight) &&
		job_find_divide(json_string(json_get(staleness, "divide")), &r->divide));
}

/* What comes of the round: nothing said of it means that the next one starts from its model. */
static bool
read_turn(struct cmd_verify_round *r, const struct json *b)
{
	const struct json *guard = json_get(b, "guard"), *evaluate = json_get(b, "evaluate");
	const struct json *factor = json_get(json_get(b, "server_optimizer"), "factor");

	r->factor = factor ? number(factor) : 1;
	r->evaluated = evaluate != NULL;
	r->loss = number(json_get(evaluate, "loss"));
	r->accuracy = number(json_get(evaluate, "accuracy"));
	r->own = number(json_get(b, "own"));
	if (json_get(b, "measured") && !json_u64(json_get(b, "measured"), &r->measured))
		return false;
	memcpy(r->next, r->model, 32);
	memcpy(r->next_state, r->state, 32);
	if (guard && !get_word(guard, "do", r->guard))
		return false;
	return !json_get(guard, "base") ||
	    (get_id(guard, "base", r->next, 32) &&
		get_id(guard, "base_optimizer_state", r->next_state, 32));
}

static void
read_terms(struct cmd_verify_terms *t, const struct json *overrides)
{
	(void)json_u64(json_get(overrides, override_path(OVERRIDE_ROUND_GOAL)), &t->goal);
	(void)json_u64(json_get(overrides, override_path(OVERRIDE_ROUND_QUORUM)), &t->quorum);
}

uint32_t
cmd_verify_history_quorum(const struct cmd_verify_terms *t, const struct job_spec *document)
{
	uint32_t quorum = document->round.quorum;

	if (t->quorum > 0 && t->quorum < quorum)
		quorum = (uint32_t)t->quorum;
	return t->goal > 0 && t->goal < quorum ? (uint32_t)t->goal : quorum;
}

static bool
read_round(struct cmd_verify_round *r, const struct json *b)
{
	const struct json *opt = json_get(b, "server_optimizer");

	read_terms(&r->terms, json_get(b, "overrides"));
	return !job_stamp_read(&r->stamp, json_get(b, "defaults"), NULL) && json_get(b, "base") &&
	    json_get(b, "model") && get_id(b, "job", r->job, 16) &&
	    json_u64(json_get(b, "round"), &r->round) && r->round > 0 &&
	    get_id(b, "base", r->base, 32) && get_id(b, "model", r->model, 32) &&
	    get_id(b, "base_optimizer_state", r->base_state, 32) &&
	    get_id(b, "optimizer_state", r->state, 32) &&
	    get_word(json_get(b, "rule"), "name", r->rule) && get_word(opt, "name", r->optimizer) &&
	    json_double(json_get(opt, "rate"), &r->rate) &&
	    json_double(json_get(opt, "momentum"), &r->momentum) &&
	    json_u64(json_get(b, "reports"), &r->reports) &&
	    json_u64(json_get(b, "examples"), &r->examples) && read_turn(r, b) && read_mode(r, b);
}

enum err
cmd_verify_history_round(
    struct cmd_verify_round *out, const struct cmd_verify_entry *e, struct why *why)
{
	bool committed = e->event == RECORD_ROUND_COMMITTED;

	memset(out, 0, sizeof(*out));
	if (!committed && e->event != RECORD_ROUND_FAILED)
		return ERR_NOTFOUND;
	if (!read_round(out, e->body))
		return err_set(why, ERR_CORRUPT, "its body lacks what a round's record needs");
	if (memcmp(out->job, e->link.job, 16) != 0 || out->round != e->link.round)
		return err_set(why, ERR_CORRUPT, "entry and body name different rounds");
	if (out->reports != e->places)
		return err_set(why, ERR_CORRUPT, "it counts other reports than it lists");
	out->committed = committed;
	out->manifests = e->details;
	out->count = e->count;
	return ERR_OK;
}

/* One more item of `size` bytes behind `count` of them; grows at powers of two. NULL if memory is short. */
static void *
grow(void *items, size_t count, size_t size)
{
	if (count > 0 && (count & (count - 1)) != 0)
		return items;
	return realloc(items, (count ? count * 2 : 1) * size);
}

static enum err
add_model(struct cmd_verify_job *j, const uint8_t id[32])
{
	void *grown = grow(j->models, j->model_count, sizeof(*j->models));

	if (!grown)
		return ERR_NOMEM;
	j->models = grown;
	memcpy(j->models[j->model_count++], id, 32);
	return ERR_OK;
}

static bool
has_model(const struct cmd_verify_job *j, const uint8_t id[32])
{
	for (size_t i = j->model_count; i-- > 0;)
		if (memcmp(j->models[i], id, 32) == 0)
			return true;
	return false;
}

static struct cmd_verify_job *
find_job(const struct cmd_verify_history *h, const uint8_t id[16])
{
	for (size_t i = 0; i < h->job_count; i++)
		if (memcmp(h->jobs[i].id, id, 16) == 0)
			return &h->jobs[i];
	return NULL;
}

const struct cmd_verify_job *
cmd_verify_history_job(const struct cmd_verify_history *h, const uint8_t id[16])
{
	return find_job(h, id);
}

/* The job's place, made if need be; NULL if memory is short. */
static struct cmd_verify_job *
need_job(struct cmd_verify_history *h, const uint8_t id[16])
{
	struct cmd_verify_job *j = find_job(h, id);

	if (j)
		return j;
	void *grown = grow(h->jobs, h->job_count, sizeof(*h->jobs));
	if (!grown)
		return NULL;
	h->jobs = grown;
	j = &h->jobs[h->job_count++];
	*j = (struct cmd_verify_job){.document = NULL};
	memcpy(j->id, id, 16);
	return j;
}

/* Where the id stands or would stand. */
static size_t
device_place(const struct cmd_verify_history *h, const uint8_t id[32], bool *found)
{
	size_t low = 0, high = h->device_count;

	*found = false;
	while (low < high && !*found) {
		size_t mid = low + (high - low) / 2;
		int order = memcmp(h->devices[mid].id, id, 32);
		*found = order == 0;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return high;
}

static struct cmd_verify_device *
need_device(struct cmd_verify_history *h, const uint8_t id[32])
{
	bool found;
	size_t at = device_place(h, id, &found);

	if (found)
		return &h->devices[at];
	void *grown = grow(h->devices, h->device_count, sizeof(*h->devices));
	if (!grown)
		return NULL;
	h->devices = grown;
	memmove(
	    &h->devices[at + 1], &h->devices[at], (h->device_count++ - at) * sizeof(*h->devices));
	h->devices[at] = (struct cmd_verify_device){.keys = NULL};
	memcpy(h->devices[at].id, id, 32);
	return &h->devices[at];
}

/* --- what entries tell */

static enum err
add_submission(struct cmd_verify_history *h, const struct cmd_verify_entry *e, struct why *why)
{
	struct cmd_verify_job *j = need_job(h, e->link.job);
	uint8_t digest[HASH_LEN], model[32];

	if (!j)
		return ERR_NOMEM;
	if (!get_id(e->body, "model", model, sizeof(model)))
		return err_set(why, ERR_CORRUPT, "it names no initial model");
	enum err result = add_model(j, model);
	const struct record_detail *d = e->count > 0 ? &e->details[e->count - 1] : NULL;
	if (result || !d || d->place + 1 != e->places || j->document)
		return result;
	hash_sha256(digest, d->data, d->len);
	if (memcmp(digest, j->id, sizeof(j->id)) != 0)
		return err_set(why, ERR_CORRUPT, "the document is not that of the job");
	j->document = malloc(d->len + 1);
	if (!j->document)
		return ERR_NOMEM;
	memcpy(j->document, d->data, d->len);
	j->document[d->len] = '\0';
	j->document_len = d->len;
	j->by_program = cmd_verify_figure_wanted(j->document, j->document_len);
	return cmd_verify_guards_new(&j->schedule, j->document, j->document_len);
}

static enum err
add_key(struct cmd_verify_device *d, const uint8_t key[KEY_SPKI_LEN])
{
	for (size_t i = 0; i < d->key_count; i++)
		if (memcmp(d->keys[i], key, KEY_SPKI_LEN) == 0)
			return ERR_OK;
	void *grown = grow(d->keys, d->key_count, sizeof(*d->keys));
	if (!grown)
		return ERR_NOMEM;
	d->keys = grown;
	memcpy(d->keys[d->key_count++], key, KEY_SPKI_LEN);
	return ERR_OK;
}

/* A device that joined (which tells key and name), has a new key or another name. */
static enum err
add_device(struct cmd_verify_history *h, const struct cmd_verify_entry *e)
{
	struct json *v = NULL;
	uint8_t id[32], key[KEY_SPKI_LEN];

	if (e->count == 0 ||
	    json_parse(&v, (const char *)e->details[0].data, e->details[0].len, NULL))
		return ERR_OK;
	enum err result = ERR_OK;
	if (json_get(v, "device") && get_id(v, "device", id, sizeof(id))) {
		bool known, told = json_get(v, "key") && get_id(v, "key", key, sizeof(key));
		(void)device_place(h, id, &known);
		struct cmd_verify_device *d = told || known ? need_device(h, id) : NULL;
		result = !told ? ERR_OK : d ? add_key(d, key) : ERR_NOMEM;
		if (d && json_get(v, "name") && !get_word(v, "name", d->name))
			d->name[0] = '\0';
	}
	json_free(v);
	return result;
}

/* --- rounds */

static enum err
check_signature(struct cmd_verify_history *h, const struct record_detail *d,
    const struct manifest *m, struct why *why)
{
	uint8_t digest[HASH_LEN];
	bool found;
	size_t at = device_place(h, m->device, &found);

	h->manifests++;
	if (!found) {
		h->unsigned_manifests++;
		return ERR_OK;
	}
	hash_sha256(digest, d->data, MANIFEST_SIGNED);
	for (size_t i = h->devices[at].key_count; i-- > 0;)
		if (sign_verify(h->devices[at].keys[i], digest, m->signature) == ERR_OK)
			return ERR_OK;
	return err_set(why, ERR_CORRUPT, "manifest %llu is not signed by its device",
	    (unsigned long long)d->place);
}

/* Does the task that the manifest answers start from this base, and may it still go into the round? What its round started from is not
 * known if that is older than the log. */
static bool
is_task_of(
    const struct cmd_verify_job *j, const struct cmd_verify_round *r, const struct manifest *m)
{
	if (m->round > r->round || r->round - m->round > r->max_staleness)
		return false;
	if (m->round == r->round)
		return memcmp(m->base, r->base, 32) == 0;
	for (size_t i = 0; i < j->point_count; i++)
		if (j->points[i].round == m->round)
			return j->points[i].live && memcmp(m->base, j->points[i].base, 32) == 0;
	return j->point_count == 0 || m->round < j->points[j->point_count - 1].round;
}

/* Its place among the others of the round: by device, and by task. */
static void
place_of(const struct manifest *m, uint8_t out[40])
{
	struct bytes_writer w = bytes_writer(out, 40);

	bytes_put(&w, m->device, 32);
	bytes_put_u64(&w, m->round);
}

/* Those of a round that evaluates have no delta, all others one. */
static enum err
check_manifests(struct cmd_verify_history *h, const struct cmd_verify_job *j,
    const struct cmd_verify_round *r, enum task_kind kind, struct why *why)
{
	uint8_t before[40] = {0}, place[40];
	uint64_t examples = 0;
	struct manifest m;

	for (size_t i = 0; i < r->count; i++) {
		const struct record_detail *d = &r->manifests[i];
		bool good = manifest_decode(&m, d->data, d->len, NULL) == ERR_OK;
		if (good)
			place_of(&m, place);
		if (!good || memcmp(m.job, r->job, 16) != 0 || !is_task_of(j, r, &m) ||
		    memcmp(place, before, sizeof(place)) <= 0 ||
		    (kind == TASK_EVALUATE) != (manifest_kind(&m) == TASK_EVALUATE))
			return err_set(why, ERR_CORRUPT, "detail %llu is no manifest of this round",
			    (unsigned long long)d->place);
		memcpy(before, place, sizeof(place));
		examples += m.examples;
		enum err e = check_signature(h, d, &m, why);
		if (e)
			return e;
	}
	if (r->count == r->reports && examples != r->examples)
		return err_set(why, ERR_CORRUPT, "it counts other examples than its manifests");
	return ERR_OK;
}

static bool
goes_back(const struct cmd_verify_round *r)
{
	return memcmp(r->next, r->model, 32) != 0;
}

/* Of a job that takes late deltas: what this round's tasks start from, and what it comes to. */
static enum err
add_point(struct cmd_verify_job *j, const struct cmd_verify_round *r)
{
	const size_t most = JOB_STALENESS_MAX + 1;

	if (r->max_staleness == 0)
		return ERR_OK;
	if (!j->points)
		j->points = calloc(most, sizeof(*j->points));
	if (!j->points)
		return ERR_NOMEM;
	late_open(j->points, &j->point_count, most, r->round, r->base);
	memcpy(j->points[0].model, r->model, 32);
	return ERR_OK;
}

/* What an older base was called is known unless the log is younger. */
static enum err
step_schedule(struct cmd_verify_job *j, const struct cmd_verify_round *r, struct why *why)
{
	static const uint8_t unknown[32];
	const struct late_point *p = late_find(j->points, j->point_count, r->measured);

	return cmd_verify_guards_step(j->schedule, r, p ? p->base : unknown, why);
}

/* How the job goes on from here, which its guard may have decided. */
static enum err
add_turn(struct cmd_verify_job *j, const struct cmd_verify_round *r, struct why *why)
{
	if (goes_back(r) && !has_model(j, r->next))
		return err_set(why, ERR_CORRUPT, "its guard goes back to no model of its job");
	memcpy(j->next, r->next, 32);
	memcpy(j->next_state, r->next_state, 32);
	if (goes_back(r)) {
		void *grown = grow(j->returns, j->return_count, sizeof(*j->returns));
		if (!grown)
			return ERR_NOMEM;
		j->returns = grown;
		memcpy(j->returns[j->return_count++], r->next, 32);
	}
	return j->schedule ? step_schedule(j, r, why) : ERR_OK;
}

static enum err
add_round(struct cmd_verify_history *h, const struct cmd_verify_round *r, struct why *why)
{
	struct cmd_verify_job *j = need_job(h, r->job);

	if (!j)
		return ERR_NOMEM;
	/* A job older than the log begins somewhere. */
	bool first = j->model_count == 0;
	if (!first && r->round != j->rounds + 1)
		return err_set(why, ERR_CORRUPT, "round %llu follows round %llu of its job",
		    (unsigned long long)r->round, (unsigned long long)j->rounds);
	if (!first && !has_model(j, r->base))
		return err_set(why, ERR_CORRUPT, "its base is no model of its job");
	if (j->rounds > 0 &&
	    (memcmp(r->base, j->next, 32) != 0 || memcmp(r->base_state, j->next_state, 32) != 0))
		return err_set(why, ERR_CORRUPT, "its base is not what the round before left");
	if (!r->committed &&
	    (memcmp(r->base, r->model, 32) != 0 || memcmp(r->base_state, r->state, 32) != 0))
		return err_set(why, ERR_CORRUPT, "a failed round changed the model");
	j->rounds = r->round;
	h->committed += r->committed;
	h->failed += !r->committed;
	enum err e = cmd_verify_figure_check(&j->figure, r, j->by_program, why);
	if (!e && first)
		e = add_model(j, r->base);
	if (!e && r->committed)
		e = add_model(j, r->model);
	if (!e)
		e = add_point(j, r);
	if (!e)
		e = add_turn(j, r, why);
	return e ? e : check_manifests(h, j, r, TASK_TRAIN, why);
}

/* --- evaluations */

/* A round that makes no model: it measures the one that its job has come to, or begins with. */
static bool
read_evaluation(struct cmd_verify_round *r, const struct cmd_verify_entry *e)
{
	const struct json *b = e->body;

	memset(r, 0, sizeof(*r));
	r->manifests = e->details;
	r->count = e->count;
	return json_get(b, "model") && get_id(b, "model", r->base, 32) &&
	    get_id(b, "job", r->job, 16) && json_u64(json_get(b, "round"), &r->round) &&
	    json_u64(json_get(b, "reports"), &r->reports) &&
	    json_u64(json_get(b, "examples"), &r->examples) &&
	    memcmp(r->job, e->link.job, 16) == 0 && r->round == e->link.round &&
	    r->reports == e->places;
}

static enum err
add_evaluation(struct cmd_verify_history *h, const struct cmd_verify_entry *e, struct why *why)
{
	struct cmd_verify_round r;

	if (!read_evaluation(&r, e))
		return err_set(why, ERR_CORRUPT, "its body is not that of an evaluation");
	struct cmd_verify_job *j = need_job(h, r.job);
	if (!j)
		return ERR_NOMEM;
	bool first = j->model_count == 0;
	if (!first && r.round != j->rounds + 1)
		return err_set(why, ERR_CORRUPT, "round %llu follows round %llu of its job",
		    (unsigned long long)r.round, (unsigned long long)j->rounds);
	if (j->rounds > 0 ? memcmp(r.base, j->next, 32) != 0 : !first && !has_model(j, r.base))
		return err_set(why, ERR_CORRUPT, "it measures no model that its job came to");
	j->rounds = r.round;
	h->evaluated++;
	return check_manifests(h, j, &r, TASK_EVALUATE, why);
}

/* Of a model that its round's entry, the next one of its job, has still to name. */
static enum err
add_figure(struct cmd_verify_history *h, const struct cmd_verify_entry *e, struct why *why)
{
	struct cmd_verify_job *j = need_job(h, e->link.job);
	const struct record_detail *signed_by;
	struct manifest m;

	enum err result = j ? cmd_verify_figure_read(j, e, &signed_by, &m, why) : ERR_NOMEM;
	return result || !signed_by ? result : check_signature(h, signed_by, &m, why);
}

enum err
cmd_verify_history_add(void *ctx, const struct cmd_verify_entry *e, struct why *why)
{
	struct cmd_verify_history *h = ctx;
	struct cmd_verify_round r;

	if (e->event == RECORD_JOB_SUBMITTED)
		return add_submission(h, e, why);
	if (e->event == RECORD_DEVICE_JOINED || e->event == RECORD_DEVICE_ROTATED ||
	    e->event == RECORD_DEVICE_CHANGED)
		return add_device(h, e);
	if (e->event == RECORD_MODEL_EVALUATED)
		return add_figure(h, e, why);
	if (e->event == RECORD_ROUND_EVALUATED)
		return add_evaluation(h, e, why);
	enum err result = cmd_verify_history_round(&r, e, why);
	if (result == ERR_NOTFOUND)
		return ERR_OK;
	return result ? result : add_round(h, &r, why);
}

enum err
cmd_verify_history_device(
    const struct cmd_verify_history *h, const char *word, uint8_t id[32], struct why *why)
{
	size_t len = strlen(word), fits = 0;
	char hex[65];

	if (hex_decode(id, 32, word, len))
		return ERR_OK;
	for (size_t i = 0; i < h->device_count; i++) {
		hex_encode(hex, h->devices[i].id, 32);
		if ((len > 0 && strncmp(hex, word, len) == 0) ||
		    strcmp(h->devices[i].name, word) == 0) {
			memcpy(id, h->devices[i].id, 32);
			fits++;
		}
	}
	if (fits == 0)
		return err_set(why, ERR_NOTFOUND, "the chain knows no device \"%.60s\"", word);
	if (fits > 1)
		return err_set(
		    why, ERR_INVALID, "%zu devices fit \"%.60s\"; give the id", fits, word);
	return ERR_OK;
}

void
cmd_verify_history_deinit(struct cmd_verify_history *h)
{
	for (size_t i = 0; i < h->job_count; i++) {
		free(h->jobs[i].document);
		free(h->jobs[i].models);
		free(h->jobs[i].returns);
		cmd_verify_guards_free(h->jobs[i].schedule);
		free(h->jobs[i].points);
	}
	for (size_t i = 0; i < h->device_count; i++)
		free(h->devices[i].keys);
	free(h->jobs);
	free(h->devices);
	*h = (struct cmd_verify_history){.jobs = NULL};
}
