#include "refold.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "fold_round.h"
#include "hex.h"
#include "inputs.h"
#include "job.h"
#include "modelfile.h"

static const uint8_t none[32];

/* A model with the optimizer state that goes with it, carried from round to round. */
struct carry {
	bool valid;
	uint8_t model[32], state_hash[32];
	uint8_t *data; /* table.bytes */
	float *state; /* NULL if the optimizer has none */
	uint64_t floats;
};

/* A base that a guard will go back to, as it was when a round first started from it. */
struct saved {
	struct carry now, other;
	bool parted;
};

struct job {
	uint8_t id[16];
	char hex[33];
	struct job_spec spec; /* of the document, */
	struct job_stamp stamp; /* and what the records say was noted beside it, */
	bool stamped; /* once it is known */
	struct tensor_table table; /* items NULL: not known yet */
	struct carry now, other; /* as it was; without the device */
	bool parted; /* the device has touched a round */
	uint64_t round; /* the last that `other` was folded for */
	struct saved *saved;
	size_t saved_count;
};

struct cmd_verify_fold {
	const struct cmd_verify_history *history;
	const char *dir, *out_dir;
	const uint8_t *without;
	struct job *jobs;
	size_t count;
};

struct cmd_verify_fold *
cmd_verify_fold_new(const struct cmd_verify_history *h, const char *dir, const uint8_t *without,
    const char *out_dir)
{
	struct cmd_verify_fold *f = calloc(1, sizeof(*f));

	if (f)
		*f = (struct cmd_verify_fold){
		    .history = h, .dir = dir, .out_dir = out_dir, .without = without};
	return f;
}

static void
drop(struct carry *c)
{
	free(c->data);
	free(c->state);
	*c = (struct carry){.valid = false};
}

void
cmd_verify_fold_free(struct cmd_verify_fold *f)
{
	for (size_t i = 0; f && i < f->count; i++) {
		drop(&f->jobs[i].now);
		drop(&f->jobs[i].other);
		for (size_t k = 0; k < f->jobs[i].saved_count; k++) {
			drop(&f->jobs[i].saved[k].now);
			drop(&f->jobs[i].saved[k].other);
		}
		free(f->jobs[i].saved);
		tensor_table_deinit(&f->jobs[i].table);
		job_deinit(&f->jobs[i].spec);
	}
	free(f ? f->jobs : NULL);
	free(f);
}

/* --- jobs */

static enum err
add_job(struct cmd_verify_fold *f, const uint8_t id[16], struct job **out, struct why *why)
{
	const struct cmd_verify_job *known = cmd_verify_history_job(f->history, id);

	if (!known || !known->document)
		return err_set(why, ERR_NOTFOUND, "the chain does not hold its job's document");
	struct job *grown = realloc(f->jobs, (f->count + 1) * sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	f->jobs = grown;
	struct job *j = &grown[f->count];
	*j = (struct job){.parted = false};
	enum err e = job_parse(&j->spec, known->document, known->document_len, why);
	if (e)
		return e == ERR_NOMEM ? e : ERR_UNSUPPORTED;
	memcpy(j->id, id, sizeof(j->id));
	hex_encode(j->hex, id, sizeof(j->id));
	f->count++;
	*out = j;
	return ERR_OK;
}

static enum err
need_job(struct cmd_verify_fold *f, const uint8_t id[16], struct job **out, struct why *why)
{
	for (size_t i = 0; i < f->count; i++) {
		if (memcmp(f->jobs[i].id, id, 16) != 0)
			continue;
		*out = &f->jobs[i];
		return ERR_OK;
	}
	return add_job(f, id, out, why);
}

/* --- base models */

/* The table is the first model's, with the job's roles; every later one must be like it. */
static enum err
take_table(struct job *j, const uint8_t *file, size_t len, uint64_t *data_at, struct why *why)
{
	struct tensor_table found = {.items = NULL};

	enum err e = len < MODELFILE_PREFIX ? err_set(why, ERR_CORRUPT, "a model file is too short")
					    : modelfile_data_at(file, len, data_at, why);
	if (!e)
		e = modelfile_parse(&found, NULL, file, (size_t)*data_at, len, why);
	if (e)
		return e;
	if (j->table.items) {
		bool same = tensor_table_same(&j->table, &found);
		tensor_table_deinit(&found);
		return same ? ERR_OK
			    : err_set(why, ERR_CORRUPT, "the job's models differ in their tensors");
	}
	e = tensor_table_assign(&found, j->spec.recipe.rules, j->spec.recipe.rule_count, why);
	if (e)
		tensor_table_deinit(&found);
	else
		j->table = found;
	return e;
}

static enum err
take_model(struct job *j, const uint8_t id[32], const uint8_t *file, size_t len, struct why *why)
{
	uint8_t digest[HASH_LEN];
	uint64_t data_at = 0;

	hash_sha256(digest, file, len);
	if (memcmp(digest, id, sizeof(digest)) != 0)
		return err_set(why, ERR_CORRUPT, "a model file does not have its name's hash");
	enum err e = take_table(j, file, len, &data_at, why);
	if (e)
		return e;
	drop(&j->now);
	j->now.data = malloc(j->table.bytes);
	if (!j->now.data)
		return ERR_NOMEM;
	memcpy(j->now.data, file + data_at, j->table.bytes);
	memcpy(j->now.model, id, 32);
	j->now.valid = true;
	return ERR_OK;
}

static enum err
load_model(struct cmd_verify_fold *f, struct job *j, const uint8_t id[32], struct why *why)
{
	char path[PATH_MAX], hex[65];
	struct file_map map = {0};

	hex_encode(hex, id, 32);
	int n = snprintf(path, sizeof(path), "%s/models/%s.safetensors", f->dir, hex);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(why, ERR_LIMIT, "the path %.60s... is too long", f->dir);
	enum err e = file_map(&map, path, UINT64_MAX, false, why);
	if (e == ERR_NOTFOUND)
		return err_set(why, e, "its base model %.12s is not here", hex);
	if (!e)
		e = take_model(j, id, map.data, map.len, why);
	else if (e == ERR_INVALID)
		e = ERR_CORRUPT;
	file_unmap(&map);
	return e;
}

/* --- folding */

/* A job is run by the same defaults from its submission on. */
static enum err
stamp(struct job *j, const struct cmd_verify_round *r, struct why *why)
{
	if (j->stamped && !job_stamp_equals(&j->stamp, &r->stamp))
		return err_set(
		    why, ERR_CORRUPT, "its record says other defaults than those of rounds before");
	j->stamp = r->stamp;
	j->stamped = true;
	job_stamp_apply(&j->spec, &j->stamp);
	return ERR_OK;
}

static enum err
prepare(struct job *j, const struct cmd_verify_round *r, struct fold_round *f, struct why *why)
{
	const struct aggregate_spec *a = &j->spec.aggregate;

	*f = (struct fold_round){.job = &j->spec,
	    .table = &j->table,
	    .number = r->round,
	    .factor = r->factor,
	    .threads = 1};
	if (strcmp(r->rule, a->rule.name) != 0 || strcmp(r->optimizer, a->optimizer) != 0)
		return err_set(why, ERR_CORRUPT,
		    "its record says %s and %s, the job's document %s and %s", r->rule,
		    r->optimizer, a->rule.name, a->optimizer);
	if (r->max_staleness != j->spec.round.max_staleness ||
	    r->buffered != (j->spec.round.mode == ROUND_MODE_BUFFERED) ||
	    (r->max_staleness > 0 &&
		(r->weight != a->staleness.weight || r->divide != a->staleness.divide)))
		return err_set(why, ERR_CORRUPT,
		    "its record says another mode or weight of late deltas than the job's "
		    "document");
	enum err e = stamp(j, r, why);
	return e ? e : fold_round_plan(f, why);
}

/* The state that belongs to the base: zeros at first, else the carried one. */
static enum err
need_state(struct carry *c, const struct server_step *s, const uint8_t want[32], struct why *why)
{
	uint64_t floats = server_step_floats(s);

	if (floats == 0)
		return ERR_OK;
	if (memcmp(want, none, 32) != 0)
		return c->state && c->floats == floats && memcmp(c->state_hash, want, 32) == 0
		    ? ERR_OK
		    : err_set(why, ERR_NOTFOUND, "its optimizer state is not here");
	free(c->state);
	c->state = calloc(floats, sizeof(float));
	c->floats = floats;
	if (!c->state)
		return ERR_NOMEM;
	return server_step_start(s, c->state, NULL);
}

static enum err
name_result(struct job *j, uint64_t round, struct carry *c, struct buf *head, struct why *why)
{
	struct modelfile_meta meta = {.round = round};
	struct hash *h = hash_new();

	if (!h)
		return ERR_NOMEM;
	memcpy(meta.job, j->hex, sizeof(meta.job));
	hex_encode(meta.base, c->model, 32);
	enum err e = modelfile_header(head, &j->table, &meta);
	if (e) {
		hash_free(h);
		return err_set(why, e, "the model's header: %s", err_name(e));
	}
	hash_start(h);
	hash_update(h, head->data, head->len);
	hash_update(h, c->data, j->table.bytes);
	hash_finish(h, c->model);
	hash_free(h);
	memset(c->state_hash, 0, sizeof(c->state_hash));
	if (c->state)
		hash_sha256(c->state_hash, c->state, c->floats * sizeof(float));
	return ERR_OK;
}

/* Moves the carried model by the chosen deltas. On failure it is no more of use. */
static enum err
move(struct job *j, const struct fold_round *plan, struct cmd_verify_inputs *in, struct carry *c,
    struct buf *head, struct why *why)
{
	struct fold_round f = *plan;

	f.step.data = c->data;
	f.step.state = c->state;
	enum err e = cmd_verify_inputs_give(in, &f);
	if (!e)
		e = fold_round_begin(&f, why);
	if (!e)
		e = fold_round_run(&f);
	if (e)
		err_set(why, e, "folding: %s", err_name(e));
	else
		e = name_result(j, f.number, c, head, why);
	fold_round_deinit(&f);
	c->valid = !e;
	return e;
}

static enum err
compare(const struct carry *c, const struct cmd_verify_round *r, struct why *why)
{
	char got[65], want[65];

	hex_encode(got, c->model, 32);
	hex_encode(want, r->model, 32);
	if (memcmp(c->model, r->model, 32) != 0)
		return err_set(why, ERR_CORRUPT,
		    "folding its deltas again gives model %.16s, the record says %.16s", got, want);
	if (memcmp(c->state_hash, r->state, 32) != 0)
		return err_set(why, ERR_CORRUPT, "folding again gives another optimizer state");
	return ERR_OK;
}

/* --- without a device */

static enum err
copy(struct carry *to, const struct carry *from, const struct job *j)
{
	drop(to);
	*to = *from;
	to->data = malloc(j->table.bytes);
	to->state = from->state ? malloc(from->floats * sizeof(float)) : NULL;
	to->valid = to->data && (!from->state || to->state);
	if (!to->valid)
		return ERR_NOMEM;
	memcpy(to->data, from->data, j->table.bytes);
	if (to->state)
		memcpy(to->state, from->state, from->floats * sizeof(float));
	return ERR_OK;
}

static enum err
write_model(const struct cmd_verify_fold *f, struct job *j, const struct buf *head, struct why *why)
{
	char path[PATH_MAX], part[PATH_MAX + 8];
	int n = snprintf(path, sizeof(path), "%s/%s-%llu.safetensors", f->out_dir, j->hex,
	    (unsigned long long)j->round);

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(why, ERR_LIMIT, "the path %.60s... is too long", f->out_dir);
	snprintf(part, sizeof(part), "%s.part", path);
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_errno(why, "create %s", part);
	enum err e = file_pwrite(fd, head->data, head->len, 0);
	if (!e)
		e = file_pwrite(fd, j->other.data, j->table.bytes, head->len);
	e = e ? err_set(why, e, "writing %s", part) : file_commit(fd, part, path, why);
	close(fd);
	if (e)
		unlink(part);
	return e;
}

/* The model without the device is that of before, if there is one. */
static void
stay(const struct job *j, struct cmd_verify_outcome *out)
{
	const struct carry *c = j->parted ? &j->other : &j->now;

	out->changed = c->valid;
	memcpy(out->model, c->model, 32);
	if (!c->valid)
		err_set(&out->changed_why, ERR_OK, "a round before could not be folded");
}

/* The same round on the model that has none of the device's work in it. Why it cannot be goes into the outcome. */
static enum err
move_other(struct cmd_verify_fold *f, struct job *j, const struct cmd_verify_round *r,
    const struct fold_round *plan, struct cmd_verify_inputs *in, struct cmd_verify_outcome *out,
    struct why *why)
{
	struct buf head;
	enum err e = ERR_OK;

	if (!j->other.valid) {
		stay(j, out);
		return ERR_OK;
	}
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	cmd_verify_inputs_choose(in, f->without);
	if (in->chosen_count > 0)
		e = move(j, plan, in, &j->other, &head, &out->changed_why);
	out->changed = !e;
	memcpy(out->model, j->other.model, 32);
	j->round = r->round;
	if (!e && f->out_dir && in->chosen_count > 0 &&
	    (out->touched || r->round == cmd_verify_history_job(f->history, j->id)->rounds))
		e = write_model(f, j, &head, why);
	else if (e != ERR_NOMEM)
		e = ERR_OK;
	buf_deinit(&head);
	return e;
}

/* --- one round */

static bool
has_device(const struct cmd_verify_round *r, const uint8_t device[32])
{
	struct manifest m;

	for (size_t i = 0; i < r->count; i++)
		if (manifest_decode(&m, r->manifests[i].data, r->manifests[i].len, NULL) ==
			ERR_OK &&
		    memcmp(m.device, device, 32) == 0)
			return true;
	return false;
}

/* --- going back */

static struct saved *
find_saved(struct job *j, const uint8_t model[32])
{
	for (size_t i = 0; i < j->saved_count; i++)
		if (memcmp(j->saved[i].now.model, model, 32) == 0)
			return &j->saved[i];
	return NULL;
}

/* Of the base at hand, if a later round starts from it again. */
static enum err
save_base(const struct cmd_verify_fold *f, struct job *j)
{
	const struct cmd_verify_job *known = cmd_verify_history_job(f->history, j->id);
	bool wanted = false;

	for (size_t i = 0; known && i < known->return_count && !wanted; i++)
		wanted = memcmp(known->returns[i], j->now.model, 32) == 0;
	if (!wanted || find_saved(j, j->now.model))
		return ERR_OK;
	struct saved *grown = realloc(j->saved, (j->saved_count + 1) * sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	j->saved = grown;
	struct saved *s = &grown[j->saved_count++];
	*s = (struct saved){.parted = j->parted};
	enum err e = copy(&s->now, &j->now, j);
	if (!e && j->parted && j->other.valid)
		e = copy(&s->other, &j->other, j);
	return e;
}

/* A round on a base that the round before did not make. */
static enum err
go_back(struct cmd_verify_fold *f, struct job *j, const uint8_t base[32], struct why *why)
{
	const struct saved *s = find_saved(j, base);

	if (!s)
		return load_model(f, j, base, why);
	enum err e = copy(&j->now, &s->now, j);
	drop(&j->other);
	j->parted = s->parted;
	if (!e && s->other.valid)
		e = copy(&j->other, &s->other, j);
	return e;
}

static enum err
need_base(
    struct cmd_verify_fold *f, const struct cmd_verify_round *r, struct job *j, struct why *why)
{
	if (j->now.valid && memcmp(j->now.model, r->base, 32) == 0)
		return ERR_OK;
	return go_back(f, j, r->base, why);
}

/* What the round needs besides its base: optimizer state and deltas. */
static enum err
gather(struct cmd_verify_fold *f, const struct cmd_verify_round *r, struct job *j,
    struct fold_round *plan, struct cmd_verify_inputs *in, struct why *why)
{
	enum err e = prepare(j, r, plan, why);

	if (!e)
		e = need_state(&j->now, &plan->step, r->base_state, why);
	if (!e)
		e = save_base(f, j);
	return e ? e
		 : cmd_verify_inputs_open(
		       in, f->dir, r, j->table.elements, j->spec.aggregate.variates > 0, why);
}

/* Both ways from a base that is there. */
static enum err
fold(struct cmd_verify_fold *f, struct job *j, const struct cmd_verify_round *r,
    const struct fold_round *plan, struct cmd_verify_inputs *in, struct cmd_verify_outcome *out,
    struct why *why)
{
	struct buf head;
	enum err e = ERR_OK;

	if (out->touched && !j->parted) {
		j->parted = true;
		e = copy(&j->other, &j->now, j);
	}
	if (!e && r->committed) {
		buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
		cmd_verify_inputs_choose(in, NULL);
		e = move(j, plan, in, &j->now, &head, why);
		buf_deinit(&head);
		if (!e)
			e = compare(&j->now, r, why);
		else if (e == ERR_NUMERIC)
			e = err_set(why, ERR_CORRUPT,
			    "folding its deltas again gives a model that is not finite");
		out->result = CMD_VERIFY_SAME;
	}
	if (!e && j->parted)
		e = move_other(f, j, r, plan, in, out, why);
	return e;
}

/* A round that failed before anything was folded: with too few reports, because its base gave no numbers. Then no model moves,
 * neither this one nor that without the device. */
static bool
was_not_folded(const struct job *j, const struct cmd_verify_round *r)
{
	return !r->committed && r->reports < cmd_verify_history_quorum(&r->terms, &j->spec);
}

enum err
cmd_verify_fold_round(struct cmd_verify_fold *f, const struct cmd_verify_round *r,
    struct cmd_verify_outcome *out, struct why *why)
{
	struct cmd_verify_inputs in = {.items = NULL};
	struct fold_round plan;
	struct job *j = NULL;

	*out = (struct cmd_verify_outcome){.result = CMD_VERIFY_SKIPPED};
	out->touched = f->without && has_device(r, f->without);
	out->erased = r->count < r->reports;
	enum err e = need_job(f, r->job, &j, &out->why);
	assert(e || j);
	if (!e)
		e = need_base(f, r, j, &out->why);
	if (!e && was_not_folded(j, r)) {
		stay(j, out);
		return ERR_OK;
	}
	if (!e)
		e = gather(f, r, j, &plan, &in, &out->why);
	if (!e) {
		e = fold(f, j, r, &plan, &in, out, why);
	} else if (e == ERR_NOTFOUND || e == ERR_UNSUPPORTED) {
		out->changed_why = out->why;
		if (j) {
			j->parted = j->parted || out->touched;
			drop(&j->other);
		}
		e = ERR_OK;
	} else {
		err_set(why, e, "%s", out->why.text[0] ? out->why.text : err_name(e));
	}
	cmd_verify_inputs_close(&in);
	return e;
}
