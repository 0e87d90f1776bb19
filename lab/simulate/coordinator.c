#include "coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "coordinator_inside.h"
#include "data.h"
#include "examples.h"
#include "file.h"
#include "glyphs.h"
#include "hash.h"
#include "hex.h"
#include "kernel_choice.h"
#include "network.h"
#include "rule.h"
#include "source.h"
#include "take.h"
#include "tensors.h"

/* The set that a coordinator's configuration would hold, where [data] says nothing else. */
#define HANDS_FIRST 1000000
#define HANDS 50

/* --- models */

struct simulate_model *
simulate_model_take(struct simulate_model *m)
{
	m->users++;
	return m;
}

void
simulate_model_drop(struct simulate_model *m)
{
	if (!m || --m->users > 0)
		return;
	if (m->path)
		(void)!remove(m->path);
	free(m->path);
	free((void *)(uintptr_t)m->base.data);
	free(m->state);
	free(m);
}

/* Where programs find it. */
static enum err
write_file(const struct simulate_coordinator *c, struct simulate_model *m, const struct buf *head,
    struct why *why)
{
	char hex[65], path[PATH_MAX];
	struct buf file;

	if (!*c->setup.scratch)
		return ERR_OK;
	hex_encode(hex, m->base.id, 32);
	int n = snprintf(path, sizeof(path), "%s/%s.safetensors", c->setup.scratch, hex);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", c->setup.scratch);
	buf_init(&file, SIZE_MAX / 2);
	enum err e = buf_append(&file, head->data, head->len);
	if (!e)
		e = buf_append(&file, m->base.data, (size_t)c->table.bytes);
	if (!e)
		e = file_write(path, file.data, file.len, 0644, why);
	buf_deinit(&file);
	m->path = e ? NULL : strdup(path);
	m->base.path = m->path;
	return e ? e : m->path ? ERR_OK : ERR_NOMEM;
}

static enum err
make_head(
    const struct simulate_coordinator *c, struct buf *head, uint64_t round, const uint8_t *from)
{
	struct modelfile_meta meta = {.round = round};

	memcpy(meta.job, c->job_hex, sizeof(meta.job));
	if (from)
		hex_encode(meta.base, from, 32);
	buf_init(head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	return modelfile_header(head, &c->table, &meta);
}

static enum err
name(struct simulate_model *m, const struct buf *head, uint64_t bytes)
{
	struct hash *h = hash_new();

	if (!h)
		return ERR_NOMEM;
	hash_start(h);
	hash_update(h, head->data, head->len);
	hash_update(h, m->base.data, (size_t)bytes);
	hash_finish(h, m->base.id);
	hash_free(h);
	m->base.file_bytes = head->len + bytes;
	return ERR_OK;
}

enum err
simulate_model_new(struct simulate_model **out, struct simulate_coordinator *c,
    const struct simulate_model_parts *parts, struct why *why)
{
	struct simulate_model *m = calloc(1, sizeof(*m));
	struct buf head;

	if (!m) {
		free(parts->data);
		free(parts->state);
		return ERR_NOMEM;
	}
	m->users = 1;
	m->round = parts->round;
	m->base.data = parts->data;
	if (parts->from)
		memcpy(m->from, parts->from, 32);
	m->state = parts->state;
	if (m->state && c->setup.job->aggregate.variates > 0)
		m->base.variate = m->state + c->state_floats - c->table.elements;
	enum err e = make_head(c, &head, parts->round, parts->from);
	if (!e)
		e = name(m, &head, c->table.bytes);
	if (!e)
		e = write_file(c, m, &head, why);
	buf_deinit(&head);
	if (e)
		simulate_model_drop(m);
	else
		*out = m;
	return e;
}

enum err
simulate_model_keep(struct simulate_coordinator *c, struct simulate_model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < c->kept_count; i++) {
		struct simulate_model *k = c->kept[i];
		if (k == c->base || k == m || rate_control_holds_model(&c->schedule, k->base.id))
			c->kept[n++] = k;
		else
			simulate_model_drop(k);
	}
	c->kept_count = n;
	for (size_t i = 0; i < n; i++)
		if (c->kept[i] == m)
			return ERR_OK;
	void *grown = bytes_grow(c->kept, n, &c->kept_room, sizeof(struct simulate_model *));
	if (!grown)
		return ERR_NOMEM;
	c->kept = grown;
	c->kept[c->kept_count++] = simulate_model_take(m);
	return ERR_OK;
}

/* --- the first one */

/* Of figures only: the weights are drawn to where they stay. */
static enum err
plan_net(const struct simulate_coordinator *c, struct net **out, struct why *why)
{
	const struct recipe *r = &c->setup.job->recipe;
	const struct net_part whole = {.spec = &r->net,
	    .classes = r->data.class_count,
	    .last = r->net.layer_count,
	    .max_batch = 1,
	    .contexts = 1,
	    .planned = 1};

	return net_new_part(out, &whole, why);
}

struct filling {
	uint8_t *at;
};

static enum err
fill(void *filling, const float *w, size_t n)
{
	struct filling *f = filling;

	memcpy(f->at, w, n * sizeof(*w));
	f->at += n * sizeof(*w);
	return ERR_OK;
}

/* from: what is taken of a file, NULL: nothing. */
static enum err
fill_first(struct simulate_coordinator *c, const struct net *net, const uint8_t *from,
    uint8_t **data, struct why *why)
{
	uint8_t *whole = malloc((size_t)net_tensors(net)->bytes);
	struct filling f = {whole};
	const struct net_drawing how = {
	    .seed = c->setup.job->seed, .end = UINT64_MAX, .take = fill, .context = &f};

	if (!whole)
		return ERR_NOMEM;
	enum err e = from ? take_pieces(net, &c->table, from, &how, why) : net_draw(net, &how);
	if (e)
		free(whole);
	else
		*data = whole;
	return e;
}

static enum err
draw_first(struct simulate_coordinator *c, uint8_t **data, struct why *why)
{
	struct net *net = NULL;

	if (c->setup.job->recipe.net.layer_count == 0)
		return err_set(why, ERR_INVALID,
		    "the job has no layers: give its first weights with --init FILE");
	enum err e = plan_net(c, &net, why);
	if (e)
		return e;
	e = tensor_table_copy(&c->table, net_tensors(net));
	if (!e)
		e = tensor_table_copy(&c->net, net_tensors(net));
	*data = NULL;
	if (!e)
		e = fill_first(c, net, NULL, data, why);
	net_free(net);
	return e;
}

/* A file with the tensors of the layers stays as it is; one that lacks some, or has names of its own for them, is written anew. */
static enum err
fit_layers(struct simulate_coordinator *c, uint8_t **data, struct why *why)
{
	struct net *net = NULL;
	uint8_t *fresh = NULL;

	if (c->setup.job->recipe.net.layer_count == 0)
		return ERR_OK;
	enum err e = plan_net(c, &net, why);
	if (!e)
		e = tensor_table_copy(&c->net, net_tensors(net));
	if (!e && tensor_table_fits(&c->net, &c->table, NULL)) {
		e = fill_first(c, net, *data, &fresh, why);
		free(*data);
		*data = fresh;
		c->refitted = true;
		tensor_table_deinit(&c->table);
		if (!e)
			e = tensor_table_copy(&c->table, &c->net);
	}
	net_free(net);
	return e;
}

static enum err
read_first(struct simulate_coordinator *c, uint8_t **data, struct why *why)
{
	struct tensors from;
	enum err e = tensors_open(&from, c->setup.init, why);

	if (e)
		return e;
	e = tensor_table_copy(&c->table, &from.table);
	*data = e ? NULL : malloc((size_t)c->table.bytes);
	if (!e && !*data)
		e = ERR_NOMEM;
	if (!e)
		memcpy(*data, from.data, (size_t)c->table.bytes);
	tensors_close(&from);
	return e ? e : fit_layers(c, data, why);
}

/* A job's `init` names the file by its hash: what it is called in records, and what programs find. */
static enum err
rename_first(struct simulate_coordinator *c, struct why *why)
{
	const char *init = c->setup.job->recipe.init;
	uint8_t want[32], hash[32];
	struct file_map file;

	if (!init[0] || !hex_decode(want, sizeof(want), init, strlen(init)))
		return ERR_OK;
	enum err e = file_map(&file, c->setup.init, UINT64_MAX, false, why);
	if (e)
		return e;
	hash_sha256(hash, file.data, file.len);
	c->base->base.file_bytes = file.len;
	if (memcmp(hash, want, 32) != 0)
		e = err_set(why, ERR_INVALID, "%s is not the model that the job's init names",
		    c->setup.init);
	else if (c->base->path && !c->refitted)
		e = file_write(c->base->path, file.data, file.len, 0644, why);
	file_unmap(&file);
	if (e)
		return e;
	memcpy(c->base->base.id, hash, 32);
	return ERR_OK;
}

static enum err
make_first(struct simulate_coordinator *c, struct why *why)
{
	const struct recipe *r = &c->setup.job->recipe;
	uint8_t *data = NULL;

	if (r->init[0] && !c->setup.init)
		return err_set(why, ERR_INVALID,
		    "the job begins with a model of its own: give its file with --init FILE");
	enum err e = c->setup.init ? read_first(c, &data, why) : draw_first(c, &data, why);
	if (!e)
		e = tensor_table_assign(&c->table, r->rules, r->rule_count, why);
	for (size_t i = 0; !e && c->setup.init && i < c->table.count; i++)
		e = tensor_check_finite(&c->table.items[i], c->table.items[i].role, data, why);
	if (e) {
		free(data);
		return e;
	}
	const struct simulate_model_parts parts = {.data = data};
	e = simulate_model_new(&c->base, c, &parts, why);
	if (!e && c->setup.init)
		e = rename_first(c, why);
	return e ? e : simulate_model_keep(c, c->base);
}

/* --- what it measures with */

static enum err
load_test(struct simulate_coordinator *c, struct why *why)
{
	const struct recipe *r = &c->setup.job->recipe;
	const char *word = c->setup.test ? c->setup.test : r->evaluate_data;
	const struct settings_data *d;
	char here[DATASET_SHAPE_TEXT], there[DATASET_SHAPE_TEXT];

	if (!simulate_coordinator_has_test(c))
		return ERR_OK;
	d = settings_find_data(c->setup.settings, word);
	if (!d)
		return err_set(why, ERR_NOTFOUND,
		    "no [data %s] for the coordinator's evaluation; --test NAME takes another",
		    word);
	enum err e = d->source.format == DATA_GLYPHS
	    ? glyphs_mixed(&c->test, d->seed, HANDS_FIRST, HANDS, (uint32_t)d->glyph_count)
	    : source_load(&c->test, &d->source, NULL, why);
	if (!e)
		e = examples_cut(&c->test, r->data.window, why);
	if (!e && !dataset_shape_fits(&c->test, &r->data))
		e = err_set(why, ERR_INVALID, "data %s has examples of shape %s, the job wants %s",
		    word, dataset_shape_text(here, c->test.shape, c->test.dims),
		    dataset_shape_text(there, r->data.shape, r->data.dims));
	if (!e && c->setup.backdoor)
		e = fleet_deal_triggered(&c->triggered, &c->test, why);
	return e;
}

static enum err
check_rule(const struct job_spec *job, struct why *why)
{
	enum err e = rule_check(&job->aggregate.rule, job->round.quorum, why);

	return e ? e : rule_check(&job->aggregate.rule, job->round.goal, why);
}

enum err
simulate_coordinator_init(
    struct simulate_coordinator *c, const struct simulate_setup *setup, struct why *why)
{
	uint8_t digest[HASH_LEN];

	*c = (struct simulate_coordinator){
	    .setup = *setup, .schedule = rate_control_start(), .quorum = setup->job->round.quorum};
	hash_sha256(digest, setup->text, setup->len);
	memcpy(c->job, digest, sizeof(c->job));
	hex_encode(c->job_hex, digest, 16);
	if (setup->job->recipe.net.arithmetic == ARITHMETIC_FAST)
		kernel_choice_ready(NULL);
	enum err e = check_rule(setup->job, why);
	if (!e)
		e = make_first(c, why);
	if (!e)
		e = load_test(c, why);
	return e;
}

void
simulate_coordinator_deinit(struct simulate_coordinator *c)
{
	simulate_model_drop(c->base);
	for (size_t i = 0; i < c->kept_count; i++)
		simulate_model_drop(c->kept[i]);
	free(c->kept);
	free(c->answers);
	tensor_table_deinit(&c->table);
	tensor_table_deinit(&c->net);
	dataset_deinit(&c->test);
	dataset_deinit(&c->triggered);
	*c = (struct simulate_coordinator){.base = NULL};
}

enum err
simulate_coordinator_save(const struct simulate_coordinator *c, const char *path, struct why *why)
{
	const struct simulate_model *m = c->base;
	struct buf file;

	enum err e = make_head(c, &file, m->round, m->round > 0 ? m->from : NULL);
	file.max = SIZE_MAX / 2;
	if (!e)
		e = buf_append(&file, m->base.data, (size_t)c->table.bytes);
	if (!e)
		e = file_write(path, file.data, file.len, 0644, why);
	buf_deinit(&file);
	return e;
}
