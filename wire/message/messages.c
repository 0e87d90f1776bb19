#include "messages.h"
#include "base64.h"
#include "buf.h"
#include "field.h"
#include "hex.h"
#include "json.h"
#include "messages_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX 50
#define PAUSE_MAX 1000000
#define DEADLINE_MAX 1e9

enum err
messages_finish(struct buf *out, struct json *tree)
{
	enum err e = json_print(out, tree, false);

	json_free(tree);
	return e;
}

struct field
messages_open(struct json **tree, struct field_reader *reader, const char *text, size_t len)
{
	reader->strict = false;
	reader->err = json_parse(tree, text, len, reader->why);
	return field_root(reader, *tree);
}

enum err
messages_decode(const struct message *m, const char *text, size_t len, struct why *why)
{
	struct field_reader reader = {.why = why};
	struct json *tree = NULL;
	struct field root = messages_open(&tree, &reader, text, len);

	memset(m->out, 0, m->size);
	m->read(m->out, &root);
	json_free(tree);
	if (reader.err)
		memset(m->out, 0, m->size);
	return reader.err;
}

static void
add_names(struct json *o, const char *key, const message_name *names, size_t n)
{
	struct json *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_push(list, json_new_string(names[i]));
	json_add(o, key, list);
}

static struct json *
offer_data_tree(const struct offer_data *d)
{
	struct json *o = json_object();

	json_add_string(o, "name", d->name);
	json_add_u64(o, "examples", d->examples);
	if (d->tokens)
		json_add_u64(o, "tokens", d->tokens);
	if (d->class_count)
		add_names(o, "classes", d->classes, d->class_count);
	return o;
}

bool
messages_offer_gives_figures(const struct offer *o, const char *name)
{
	bool gives = false;

	for (size_t i = 0; i < o->trainer_count; i++)
		gives |= strcmp(o->trainers[i], name) == 0 && o->trainer_figures >> i & 1;
	for (size_t i = 0; i < o->evaluator_count; i++)
		gives |= strcmp(o->evaluators[i], name) == 0 && o->evaluator_figures >> i & 1;
	return gives;
}

static void
set_bits(uint64_t *bits, const message_name *names, size_t count, const char *name, bool gives)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			*bits = (*bits & ~((uint64_t)1 << i)) | (uint64_t)gives << i;
}

void
messages_offer_set_figures(struct offer *o, const char *name, bool gives)
{
	set_bits(&o->trainer_figures, o->trainers, o->trainer_count, name, gives);
	set_bits(&o->evaluator_figures, o->evaluators, o->evaluator_count, name, gives);
}

static void
add_figures(struct json *o, const struct offer *in)
{
	struct json *list = json_array();

	for (size_t i = 0; i < in->trainer_count; i++)
		if (in->trainer_figures >> i & 1)
			json_push(list, json_new_string(in->trainers[i]));
	for (size_t i = 0; i < in->evaluator_count; i++)
		if (in->evaluator_figures >> i & 1)
			json_push(list, json_new_string(in->evaluators[i]));
	json_add(o, "figures", list);
}

static void
add_resting(struct json *o, const struct offer *in)
{
	if (in->resting_count == 0)
		return;
	struct json *list = json_array();
	for (size_t i = 0; i < in->resting_count; i++) {
		struct json *job = json_object();
		char hex[2 * sizeof(in->resting[i].job) + 1];
		hex_encode(hex, in->resting[i].job, sizeof(in->resting[i].job));
		json_add_string(job, "job", hex);
		json_add_u64(job, "seconds", in->resting[i].seconds);
		json_push(list, job);
	}
	json_add(o, "resting", list);
}

enum err
messages_offer_encode(struct buf *out, const struct offer *in)
{
	struct json *o = json_object(), *data = json_array(), *held = json_array();

	json_add_string(o, "agent", in->agent);
	json_add_u64(o, "protocol", in->protocol);
	for (size_t i = 0; i < in->data_count; i++)
		json_push(data, offer_data_tree(&in->data[i]));
	json_add(o, "data", data);
	add_names(o, "trainers", in->trainers, in->trainer_count);
	if (in->evaluator_count)
		add_names(o, "evaluators", in->evaluators, in->evaluator_count);
	add_names(o, "codecs", in->codecs, in->codec_count);
	add_names(o, "layers", in->layers, in->layer_count);
	if (in->feature_count)
		add_names(o, "features", in->features, in->feature_count);
	json_add_u64(o, "memory_bytes", in->memory_bytes);
	for (size_t i = 0; i < in->held_count; i++)
		json_push(held, json_new_string(in->held_models[i]));
	json_add(o, "held_models", held);
	if (in->unsent_count) {
		held = json_array();
		for (size_t i = 0; i < in->unsent_count; i++)
			json_push(held, json_new_string(in->unsent[i]));
		json_add(o, "unsent", held);
	}
	json_add_u64(o, "wait", in->wait_s);
	if (in->time_ms)
		json_add_u64(o, "time_ms", in->time_ms);
	if (in->has_disk_free)
		json_add_u64(o, "disk_free_bytes", in->disk_free_bytes);
	if (*in->unready)
		json_add_string(o, "unready", in->unready);
	if (*in->machine)
		json_add_string(o, "machine", in->machine);
	if (in->says_figures)
		add_figures(o, in);
	add_resting(o, in);
	return messages_finish(out, o);
}

size_t
messages_names(message_name *names, struct field *o, const char *key, size_t least)
{
	struct field_list list;
	struct field item;
	size_t n = 0;

	field_array(&list, o, key, least, MESSAGES_LIST_MAX);
	while (field_each(&list, &item))
		field_string(&item, NULL, FIELD_NAME, names[n++], sizeof(*names), NULL);
	return n;
}

static void
read_offer_data(struct offer_data *d, struct field *item)
{
	struct field o = field_object(item, NULL);
	struct field_list list;
	struct field name;
	size_t n;

	field_string(&o, "name", FIELD_NAME, d->name, sizeof(d->name), NULL);
	d->examples = field_u64(&o, "examples", 0, JSON_INT_MAX, FIELD_MUST_U64);
	d->tokens = field_u64(&o, "tokens", 0, JSON_INT_MAX, 0);
	n = field_array(&list, &o, "classes", 0, RECIPE_CLASSES_MAX);
	if (n == 0)
		return;
	d->classes = calloc(n, sizeof(*d->classes));
	if (!d->classes) {
		field_no_memory(&o);
		return;
	}
	while (field_each(&list, &name))
		field_string(&name, NULL, FIELD_LINE, d->classes[d->class_count++],
		    sizeof(*d->classes), NULL);
}

static void
read_figures(struct offer *out, struct field *o)
{
	struct field_list list;
	struct field item;
	message_name name;

	out->says_figures = field_has(o, "figures");
	field_array(&list, o, "figures", 0, 2 * MESSAGES_LIST_MAX);
	while (field_each(&list, &item)) {
		field_string(&item, NULL, FIELD_NAME, name, sizeof(name), NULL);
		messages_offer_set_figures(out, name, true);
	}
}

static void
read_resting(struct offer *out, struct field *o)
{
	struct field_list list;
	struct field item;

	field_array(&list, o, "resting", 0, MESSAGES_LIST_MAX);
	while (field_each(&list, &item)) {
		struct offer_resting *r = &out->resting[out->resting_count++];
		struct field job = field_object(&item, NULL);
		char hex[2 * sizeof(r->job) + 1];
		field_hex(&job, "job", hex, sizeof(hex), NULL);
		(void)hex_decode(r->job, sizeof(r->job), hex, strlen(hex));
		r->seconds = (uint32_t)field_u64(&job, "seconds", 0, PAUSE_MAX, 0);
	}
}

static void
read_offer(struct offer *out, struct field *o)
{
	struct field_list list;
	struct field item;

	field_string(o, "agent", FIELD_LINE, out->agent, sizeof(out->agent), "");
	out->protocol = field_u64(o, "protocol", 0, JSON_INT_MAX, FIELD_MUST_U64);
	field_array(&list, o, "data", 0, MESSAGES_LIST_MAX);
	while (field_each(&list, &item))
		read_offer_data(&out->data[out->data_count++], &item);
	out->trainer_count = messages_names(out->trainers, o, "trainers", 0);
	out->evaluator_count = messages_names(out->evaluators, o, "evaluators", 0);
	out->codec_count = messages_names(out->codecs, o, "codecs", 0);
	out->layer_count = messages_names(out->layers, o, "layers", 0);
	out->feature_count = messages_names(out->features, o, "features", 0);
	out->memory_bytes = field_u64(o, "memory_bytes", 0, JSON_INT_MAX, 0);
	field_array(&list, o, "held_models", 0, MESSAGES_LIST_MAX);
	while (field_each(&list, &item))
		field_hex(&item, NULL, out->held_models[out->held_count++],
		    sizeof(*out->held_models), NULL);
	field_array(&list, o, "unsent", 0, MESSAGES_LIST_MAX);
	while (field_each(&list, &item))
		field_hex(
		    &item, NULL, out->unsent[out->unsent_count++], sizeof(*out->unsent), NULL);
	out->wait_s = field_u64(o, "wait", 0, WAIT_MAX, 0);
	out->time_ms = field_u64(o, "time_ms", 0, JSON_INT_MAX, 0);
	out->has_disk_free = field_has(o, "disk_free_bytes");
	out->disk_free_bytes = field_u64(o, "disk_free_bytes", 0, JSON_INT_MAX, 0);
	if (field_has(o, "unready"))
		field_string(o, "unready", FIELD_NAME, out->unready, sizeof(out->unready), NULL);
	field_hex(o, "machine", out->machine, sizeof(out->machine), "");
	read_figures(out, o);
	read_resting(out, o);
}

enum err
messages_offer_decode(struct offer *out, const char *text, size_t len, struct why *why)
{
	struct field_reader reader = {.why = why};
	struct json *tree = NULL;
	struct field o = messages_open(&tree, &reader, text, len);

	memset(out, 0, sizeof(*out));
	read_offer(out, &o);
	json_free(tree);
	if (reader.err)
		messages_offer_deinit(out);
	return reader.err;
}

void
messages_offer_deinit(struct offer *o)
{
	for (size_t i = 0; i < MESSAGES_LIST_MAX; i++)
		free(o->data[i].classes);
	memset(o, 0, sizeof(*o));
}

static void
put_variate(struct json *o, const struct task *in)
{
	struct json *variate;

	if (!in->state[0] && in->counted == 0)
		return;
	variate = json_object();
	if (in->state[0]) {
		json_add_string(variate, "id", in->state);
		json_add_u64(variate, "bytes", in->state_bytes);
	}
	json_add_u64(variate, "counted", in->counted);
	json_add(o, "variate", variate);
}

static struct json *
recipe_member(const struct task *in)
{
	struct buf text;

	buf_init(&text, 2 * RECIPE_TEXT_MAX);
	enum err e = recipe_text_print(&text, in->recipe.text, in->codec);
	struct json *v = e ? NULL : json_new_printed(buf_str(&text));
	buf_deinit(&text);
	return v;
}

enum err
messages_task_encode(struct buf *out, const struct task *in)
{
	struct json *o = json_object(), *model;

	if (in->renew)
		json_add_bool(o, "renew", true);
	if (in->wait) {
		json_add_u64(o, "wait", in->wait_s);
		json_add_string(o, "reason", in->reason);
		return messages_finish(out, o);
	}
	json_add_string(o, "kind", task_kind_name(in->kind));
	json_add_string(o, "task", in->task);
	json_add_string(o, "job", in->job);
	json_add_u64(o, "round", in->round);
	model = json_object();
	json_add_string(model, "id", in->model);
	json_add_u64(model, "bytes", in->model_bytes);
	if (in->from[0]) {
		struct json *from = json_object();
		json_add_string(from, "id", in->from);
		json_add_u64(from, "bytes", in->from_bytes);
		json_add(model, "from", from);
	}
	json_add(o, "model", model);
	put_variate(o, in);
	json_add(o, "recipe", recipe_member(in));
	if (in->steps > 0)
		json_add_u64(o, "steps", in->steps);
	json_add_u64(o, "seed", in->seed);
	if (in->max_examples > 0)
		json_add_u64(o, "max_examples", in->max_examples);
	json_add_double(o, "deadline_s", in->deadline_s);
	return messages_finish(out, o);
}

/* What the device needs to abort the task, whatever else is wrong with it. */
static void
read_task_ids(struct task *out, struct field *o)
{
	char kind[16];

	field_string(o, "kind", FIELD_NAME, kind, sizeof(kind), NULL);
	out->kind = o->reader->err ? TASK_UNKNOWN : task_kind_find(kind);
	field_hex(o, "task", out->task, sizeof(out->task), NULL);
	field_hex(o, "job", out->job, sizeof(out->job), NULL);
	out->round = field_u64(o, "round", 1, JSON_INT_MAX, FIELD_MUST_U64);
}

static void
read_variate(struct task *out, struct field *o)
{
	struct field variate = field_object(o, "variate");

	field_hex(&variate, "id", out->state, sizeof(out->state), "");
	if (out->state[0])
		out->state_bytes = field_u64(&variate, "bytes", 1, JSON_INT_MAX, FIELD_MUST_U64);
	out->counted = field_u64(&variate, "counted", 0, JSON_INT_MAX, 0);
	if (out->counted >= out->round)
		field_fail(&variate, "counted", "must be a round before");
}

static void
read_work(struct task *out, struct field *o)
{
	struct field model = field_object(o, "model");

	field_hex(&model, "id", out->model, sizeof(out->model), NULL);
	out->model_bytes = field_u64(&model, "bytes", 1, JSON_INT_MAX, FIELD_MUST_U64);
	if (field_has(&model, "from")) {
		struct field from = field_object(&model, "from");
		field_hex(&from, "id", out->from, sizeof(out->from), NULL);
		out->from_bytes = field_u64(&from, "bytes", 1, JSON_INT_MAX, FIELD_MUST_U64);
	}
	read_variate(out, o);
	out->seed = field_u64(o, "seed", 0, JSON_INT_MAX, FIELD_MUST_U64);
	out->max_examples = field_u64(o, "max_examples", 1, JSON_INT_MAX, 0);
	out->deadline_s = field_double(o, "deadline_s", 0, DEADLINE_MAX, FIELD_MUST_DOUBLE);
}

/* How much is wanted, where the recipe leaves that to the task. */
static void
read_steps(struct task *out, struct field *o)
{
	if (out->kind != TASK_TRAIN || out->recipe.local.unit != LOCAL_SIZED)
		return;
	out->steps = field_u64(o, "steps", 1, RECIPE_STEPS_MAX, FIELD_MUST_U64);
	out->recipe.local.amount = (double)out->steps;
}

static void
read_known(struct task *out, struct field *o)
{
	struct field_reader *reader = o->reader;

	if (!reader->err && out->kind == TASK_UNKNOWN)
		reader->err = err_set(reader->why, ERR_UNSUPPORTED, "unknown kind of task");
	if (reader->err)
		return;
	read_work(out, o);
	if (!reader->err)
		reader->err =
		    recipe_parse(&out->recipe, json_get(o->value, "recipe"), false, reader->why);
	if (!reader->err)
		read_steps(out, o);
	if (reader->err == ERR_INVALID || reader->err == ERR_LIMIT)
		reader->err = ERR_UNSUPPORTED;
}

enum err
messages_task_decode(struct task *out, const char *text, size_t len, struct why *why)
{
	struct field_reader reader = {.why = why};
	struct json *tree = NULL;
	struct field o = messages_open(&tree, &reader, text, len);

	memset(out, 0, sizeof(*out));
	out->wait = field_has(&o, "wait");
	out->renew = field_bool(&o, "renew", false);
	if (out->wait) {
		out->wait_s = field_u64(&o, "wait", 0, PAUSE_MAX, 0);
		field_string(&o, "reason", FIELD_SHOWN, out->reason, sizeof(out->reason), "");
		if (field_has(&o, "task"))
			field_fail(&o, "wait", "stands beside a task");
	} else {
		read_task_ids(out, &o);
		read_known(out, &o);
	}
	json_free(tree);
	if (reader.err && reader.err != ERR_UNSUPPORTED)
		memset(out, 0, sizeof(*out));
	return reader.err;
}

void
messages_task_deinit(struct task *t)
{
	recipe_deinit(&t->recipe);
	memset(t, 0, sizeof(*t));
}

static void
put_hex(char **at, const uint8_t *data, size_t len)
{
	hex_encode(*at, data, len);
	*at += 2 * len;
}

void
messages_token_text(char out[TOKEN_TEXT_MAX], const struct token *in)
{
	char *at = out;

	at = stpcpy(at, TOKEN_PREFIX);
	put_hex(&at, in->id, sizeof(in->id));
	*at++ = '-';
	put_hex(&at, in->secret, sizeof(in->secret));
	*at++ = '-';
	put_hex(&at, in->ca_hash, sizeof(in->ca_hash));
}

static bool
take_hex(const char **at, void *out, size_t len, char end)
{
	bool ok = hex_decode(out, len, *at, 2 * len) && (*at)[2 * len] == end;

	*at += 2 * len + 1;
	return ok;
}

enum err
messages_token_parse(struct token *out, const char *text)
{
	const char *at = text + strlen(TOKEN_PREFIX);
	struct token t;
	bool ok;

	if (strlen(text) != TOKEN_TEXT_LEN ||
	    strncmp(text, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) != 0)
		return ERR_INVALID;
	ok = take_hex(&at, t.id, sizeof(t.id), '-');
	ok = ok && take_hex(&at, t.secret, sizeof(t.secret), '-');
	ok = ok && take_hex(&at, t.ca_hash, sizeof(t.ca_hash), '\0');
	if (ok)
		*out = t;
	explicit_bzero(&t, sizeof(t));
	return ok ? ERR_OK : ERR_INVALID;
}
