#include <string.h>

#include "buf.h"
#include "config.h"
#include "fault.h"
#include "hex.h"
#include "jobs_inside.h"
#include "measure.h"
#include "modelfile.h"
#include "models.h"
#include "net.h"
#include "past_rows.h"
#include "shared.h"
#include "store.h"
#include "take.h"

/* The model that a job begins with: what is known of it before it is made, the making, and its table. */

/* Within the configuration's limit for models. Of figures only: no document makes anybody hold its weights. */
static enum err
plan_net(const struct engine_uses *u, const struct recipe *r, struct net **out, struct why *why)
{
	const struct config *c = shared_take(u->config);
	uint64_t most = c->model_bytes;

	shared_give(u->config, c);
	const struct net_part whole = {.spec = &r->net,
	    .classes = r->data.class_count,
	    .last = r->net.layer_count,
	    .max_batch = 1,
	    .contexts = 1,
	    .planned = 1,
	    .max_bytes = most};
	return net_new_part(out, &whole, why);
}

/* Of the file that is made for the job: drawn, or arranged from another. */
static enum err
make_head(struct buf *head, const struct job *j, const struct tensor_table *table)
{
	const char *init = j->work->spec.recipe.init;
	struct modelfile_meta meta = {.round = 0};

	memcpy(meta.job, j->facts.hex, sizeof(meta.job));
	if (init[0])
		memcpy(meta.base, init, sizeof(meta.base));
	buf_init(head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	return modelfile_header(head, table, &meta);
}

/* A model on its way into the model folder. */
struct making {
	struct models_file *file;
	struct why *why;
};

static enum err
take_piece(void *making, const float *w, size_t n)
{
	struct making *m = making;

	return models_file_add(m->file, w, n * sizeof(*w), m->why);
}

/* from: whose tensors it has; NULL: all are drawn. */
static enum err
write_weights(struct making *m, const struct net *net, uint64_t seed, const struct models_map *from)
{
	const struct net_drawing how = {
	    .seed = seed, .end = UINT64_MAX, .take = take_piece, .context = m};

	return from ? take_pieces(net, &from->table, from->data + from->data_at, &how, m->why)
		    : net_draw(net, &how);
}

/* Piece by piece, in the memory of one. */
static enum err
write_net(const struct engine_uses *u, const struct job *j, const struct net *net,
    const struct models_map *from, uint8_t id[32], struct why *why)
{
	struct making m = {.file = NULL, .why = why};
	struct buf head;

	enum err e = make_head(&head, j, net_tensors(net));
	if (!e)
		e = models_file_begin(u->models, &m.file, why);
	if (!e)
		e = models_file_add(m.file, head.data, head.len, why);
	FAULT("job.draws");
	if (!e)
		e = write_weights(&m, net, j->work->spec.seed, from);
	if (!e)
		e = models_file_end(m.file, id, why);
	if (!e)
		e = models_file_keep(m.file, MODELS_KIND_MODEL, id, why);
	models_file_drop(m.file);
	buf_deinit(&head);
	return e;
}

/* The model of round 0, drawn from the seed. */
static enum err
draw_model(const struct engine_uses *u, const struct job *j, uint8_t id[32], struct why *why)
{
	struct net *net = NULL;

	enum err e = plan_net(u, &j->work->spec.recipe, &net, why);
	if (e)
		return e;
	e = write_net(u, j, net, NULL, id, why);
	net_free(net);
	return e;
}

/* What a report may claim, and what measuring a batch costs. */
static void
note_net(struct job_work *w, const struct net *net)
{
	if (w->spec.recipe.evaluate_by == EVALUATE_COORDINATOR)
		w->evaluation = TRAIN_MEASURE_BATCH * net_work(net);
	w->spec.recipe.figures.outputs = net_outputs(net);
}

/* Checks that an init model is the one the layers describe. */
static enum err
check_layers(const struct engine_uses *u, struct job_work *w, const struct tensor_table *table,
    struct why *why)
{
	struct net *net = NULL;

	enum err e = plan_net(u, &w->spec.recipe, &net, why);
	if (!e && !tensor_table_same(net_tensors(net), table))
		e = err_set(
		    why, ERR_INVALID, "the model does not have the tensors of model.layers");
	if (!e)
		note_net(w, net);
	net_free(net);
	return e;
}

static enum err
check_fit(const struct net *net, const struct models_map *from, struct why *why)
{
	struct why detail = {""};
	enum err e = take_fits(net, &from->table, from->data + from->data_at, &detail);

	return e ? err_set(why, e, "model.init: %.240s", detail.text) : ERR_OK;
}

/* The uploaded model as it is, or written anew in the layers' order, which that of a delta's elements follows. What it lacks is drawn. */
static enum err
arrange_model(const struct engine_uses *u, const struct job *j, const struct models_map *from,
    uint8_t id[32], struct why *why)
{
	struct net *net = NULL;

	enum err e = plan_net(u, &j->work->spec.recipe, &net, why);
	if (e)
		return e;
	const struct tensor_table *table = net_tensors(net);
	e = check_fit(net, from, why);
	if (!e && !tensor_table_same(table, &from->table))
		e = write_net(u, j, net, from, id, why);
	net_free(net);
	return e;
}

static enum err
take_model(const struct engine_uses *u, const struct job *j, uint8_t id[32], struct why *why)
{
	const struct recipe *r = &j->work->spec.recipe;
	struct models_map *map = NULL;

	if (!hex_decode(id, 32, r->init, strlen(r->init)))
		return err_set(why, ERR_INVALID, "model.init is not a model id");
	if (r->net.layer_count == 0)
		return ERR_OK;
	enum err e = models_get(u->models, id, &map, why);
	if (!e)
		e = arrange_model(u, j, map, id, why);
	/* What could not be read of it is zeros now. */
	if (!e)
		e = models_unchanged(u->models, map, why);
	models_map_release(map);
	return e;
}

/* The model of round 0: drawn, or the uploaded one. A restart finds it by what round 1 started from. */
enum err
jobs_first_model(const struct engine_uses *u, struct job *j, uint8_t id[32], struct why *why)
{
	return j->work->spec.recipe.init[0] ? take_model(u, j, id, why) : draw_model(u, j, id, why);
}

/* A model on its way out. */
struct leftover {
	struct models *models;
	const uint8_t *model;
};

static enum err
drop_leftover(struct store_db *db, void *arg, struct why *why)
{
	const struct leftover *l = arg;
	struct store_model row;

	(void)why;
	enum err e = store_model_get(db, l->model, &row);
	return e == ERR_NOTFOUND ? models_delete(l->models, l->model) : e;
}

void
jobs_drop_leftover(struct store *store, struct models *models, const uint8_t model[32])
{
	struct leftover l = {models, model};

	(void)!store_write(store, drop_leftover, &l, NULL);
}

/* --- its table */

static enum err
take_roles(struct job *j, bool submitted, struct why *why)
{
	const struct recipe *r = &j->work->spec.recipe;
	enum err e = ERR_OK;

	if (submitted)
		e = tensor_table_bound(&j->work->table, r->rules, r->rule_count, why);
	if (!e)
		e = tensor_table_assign(&j->work->table, r->rules, r->rule_count, why);
	if (!e && j->work->table.elements == 0 && !j->work->spec.only_evaluates)
		e = err_set(why, ERR_INVALID, "the model has no tensor to train");
	change_facts(j)->parameters = j->work->table.elements;
	if (!e)
		sizes_note_fold(j->work);
	return e;
}

static enum err
count_bytes(struct job *j, const struct tensor_table *table, struct why *why)
{
	struct buf head;
	enum err e = make_head(&head, j, table);

	change_facts(j)->model_bytes = head.len + table->bytes;
	buf_deinit(&head);
	return e ? err_set(why, e, "the model's head cannot be written") : ERR_OK;
}

/* from: the uploaded model; NULL: it will be drawn. */
static enum err
describe_layers(
    const struct engine_uses *u, struct job *j, const struct models_map *from, struct why *why)
{
	struct net *net = NULL;

	enum err e = plan_net(u, &j->work->spec.recipe, &net, why);
	if (e)
		return e;
	const struct tensor_table *table = net_tensors(net);
	if (from)
		e = check_fit(net, from, why);
	if (!e)
		e = tensor_table_copy(&j->work->table, table);
	if (!e && from && tensor_table_same(table, &from->table))
		change_facts(j)->model_bytes = from->bytes;
	else if (!e)
		e = count_bytes(j, table, why);
	if (!e)
		note_net(j->work, net);
	net_free(net);
	return e;
}

static enum err
describe_init(const struct engine_uses *u, struct job *j, struct why *why)
{
	const struct recipe *r = &j->work->spec.recipe;
	struct models_map *map = NULL;
	uint8_t id[32];

	if (!hex_decode(id, sizeof(id), r->init, strlen(r->init)))
		return err_set(why, ERR_INVALID, "model.init is not a model id");
	enum err e = models_get(u->models, id, &map, why);
	if (e)
		return e;
	if (r->net.layer_count > 0) {
		e = describe_layers(u, j, map, why);
	} else {
		e = tensor_table_copy(&j->work->table, &map->table);
		change_facts(j)->model_bytes = map->bytes;
	}
	models_map_release(map);
	return e;
}

/* The uploaded model's numbers, where they are not carried unchanged: no round could mend them. A tensor of the file may have another name
 * than the job's, of a layer that shares it; its own says its role then. */
static enum err
check_numbers(const struct engine_uses *u, const struct job *j, struct why *why)
{
	const struct recipe *r = &j->work->spec.recipe;
	struct models_map *map = NULL;
	struct why detail = {""};
	uint8_t id[32];

	if (!r->init[0] || j->facts.only_evaluates ||
	    !hex_decode(id, sizeof(id), r->init, strlen(r->init)))
		return ERR_OK;
	enum err e = models_get(u->models, id, &map, why);
	for (size_t i = 0; !e && i < map->table.count; i++) {
		const struct tensor *t = &map->table.items[i];
		const struct tensor *own = tensor_table_find(&j->work->table, t->name);
		const enum tensor_role role =
		    own ? own->role : tensor_role_of(t, r->rules, r->rule_count);
		e = tensor_check_finite(t, role, map->data + map->data_at, &detail);
		if (e)
			err_set(why, e, "model.init: %.240s", detail.text);
	}
	models_map_release(map);
	return e;
}

enum err
jobs_first_table(const struct engine_uses *u, struct job *j, struct why *why)
{
	enum err e = j->work->spec.recipe.init[0] ? describe_init(u, j, why)
						  : describe_layers(u, j, NULL, why);

	if (!e)
		e = take_roles(j, true, why);
	return e ? e : check_numbers(u, j, why);
}

/* Reads the base model's table and assigns the job's roles. */
enum err
jobs_take_table(
    const struct engine_uses *u, struct job *j, const uint8_t model[32], struct why *why)
{
	const struct recipe *r = &j->work->spec.recipe;
	struct models_map *map = NULL;

	enum err e = models_get(u->models, model, &map, why);
	if (e)
		return e;
	e = tensor_table_copy(&j->work->table, &map->table);
	if (!e && r->net.layer_count > 0)
		e = check_layers(u, j->work, &map->table, why);
	if (!e)
		e = take_roles(j, false, why);
	change_facts(j)->model_bytes = map->bytes;
	models_map_release(map);
	return e;
}
