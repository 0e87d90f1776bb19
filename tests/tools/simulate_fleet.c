#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "evalset.h"
#include "field.h"
#include "file.h"
#include "glyphs.h"
#include "hash.h"
#include "hex.h"
#include "shard.h"
#include "simulate.h"
#include "training.h"

#define TRIGGER_SIDE 4 /* pixels, at the lower right corner */
#define TRIGGER_LABEL 0

static const char *const attack_names[] = {
    "none", "sign", "scale", "gauss", "alie", "ipm", "mimic", "labels", "backdoor", "lies", NULL};
static const double default_strengths[] = {0, 1, 10, 1, 0, 0.5, 0, 0, 5, 0};

/* The fleet's document, parsed. */
struct plan {
	const struct json *ids; /* NULL: made up */
	bool glyphs;
	enum shard_partition partition;
	struct settings_data from; /* idx: the whole training set; glyphs: of one hand */
	char test_images[DATA_SOURCE_TEXT], test_labels[DATA_SOURCE_TEXT];
	uint32_t test_count;
	uint64_t hands, first_hand;
};

static void
parse_data(struct field *root, struct plan *p)
{
	static const char *const formats[] = {"idx", "glyphs", NULL};
	static const char *const splits[] = {"iid", "label", NULL};
	struct field data = field_object(root, "data");

	p->glyphs = field_choice(&data, "format", formats, FIELD_MUST_CHOICE) == 1;
	p->from.seed = field_u64(&data, "seed", 0, JSON_INT_MAX, 1);
	if (p->glyphs) {
		p->from.source.format = DATA_GLYPHS;
		p->from.glyph_count = field_u64(&data, "count", 1, 1000000, 300);
		p->from.skew = field_double(&data, "skew", 0, 1, 0);
		p->test_count = (uint32_t)field_u64(&data, "test_count", 1, 1000000, 2000);
	} else {
		p->from.source.format = DATA_IDX;
		p->partition = (enum shard_partition)field_choice(&data, "split", splits, 0);
		field_string(&data, "images", FIELD_LINE, p->from.source.images,
		    sizeof(p->from.source.images), NULL);
		field_string(&data, "labels", FIELD_LINE, p->from.source.labels,
		    sizeof(p->from.source.labels), NULL);
		field_string(
		    &data, "test_images", FIELD_LINE, p->test_images, sizeof(p->test_images), NULL);
		field_string(
		    &data, "test_labels", FIELD_LINE, p->test_labels, sizeof(p->test_labels), NULL);
	}
	field_end(&data);
}

static void
parse_hostile(struct field *root, struct simulate_fleet *f)
{
	if (!field_has(root, "hostile"))
		return;
	struct field h = field_object(root, "hostile");
	f->hostile = (size_t)field_u64(&h, "count", 1, SIMULATE_DEVICES_MAX, FIELD_MUST_U64);
	int attack = field_choice(&h, "attack", attack_names, FIELD_MUST_CHOICE);
	f->attack = attack < 0 ? ATTACK_NONE : (enum simulate_attack)attack;
	f->strength = field_double(&h, "strength", 0, 1e30, default_strengths[f->attack]);
	field_end(&h);
}

/* `ids` is a list, or their number stands in `devices`. */
static void
parse(struct simulate_fleet *f, struct plan *p, struct field *root)
{
	parse_data(root, p);
	parse_hostile(root, f);
	f->evaluate_every = field_u64(root, "evaluate_every", 1, 1000000, 1);
	if (field_has(root, "ids")) {
		p->ids = json_get(root->value, "ids");
		f->count = json_count(p->ids);
	} else {
		f->count =
		    (size_t)field_u64(root, "devices", 1, SIMULATE_DEVICES_MAX, FIELD_MUST_U64);
	}
	if (f->count < 1 || f->count > SIMULATE_DEVICES_MAX || f->hostile >= f->count)
		field_fail(
		    root, NULL, "1 to %d devices, fewer of them hostile", SIMULATE_DEVICES_MAX);
	field_end(root);
}

static bool
take_id(const struct plan *p, size_t i, uint8_t id[32])
{
	char name[64];

	if (!p->ids) {
		int n = snprintf(name, sizeof(name), "simulated device %zu", i + 1);
		hash_sha256(id, name, (size_t)n);
		return true;
	}
	const char *text = json_string(json_at(p->ids, i));
	return text && hex_decode(id, 32, text, strlen(text));
}

/* Device i's examples out of all. */
static enum err
deal(struct dataset *out, const struct dataset *all, const struct plan *p, size_t i, size_t count,
    struct why *why)
{
	const struct shard shard = {.index = (uint32_t)i + 1,
	    .count = (uint32_t)count,
	    .partition = p->partition,
	    .seed = p->from.seed};
	uint32_t *keep = NULL;
	size_t kept = 0;

	enum err e = shard_pick(&keep, &kept, &shard, all->labels, all->count, why);
	if (!e)
		e = dataset_subset(out, all, keep, kept);
	out->classes = all->classes;
	free(keep);
	return e;
}

static void
draw_trigger(struct dataset *d, size_t i)
{
	size_t width = d->shape[2], height = d->shape[1];
	uint8_t *image = d->bytes + i * d->features;

	for (size_t y = height - TRIGGER_SIDE; y < height; y++)
		memset(image + y * width + width - TRIGGER_SIDE, 255, TRIGGER_SIDE);
}

/* Attackers that only change their data. */
static void
poison(enum simulate_attack attack, struct dataset *d)
{
	for (size_t i = 0; i < d->count && attack == ATTACK_LABELS; i++)
		d->labels[i] = (int32_t)d->classes - 1 - d->labels[i];
	for (size_t i = 0; i < d->count && attack == ATTACK_BACKDOOR; i += 2) {
		draw_trigger(d, i);
		d->labels[i] = TRIGGER_LABEL;
	}
}

static enum err
load_device(struct simulate_fleet *f, const struct plan *p, const struct job_spec *job,
    const struct dataset *all, size_t i, struct why *why)
{
	struct simulate_device *d = &f->devices[i];
	struct settings_data hand = p->from;
	struct dataset own = {0};

	if (!take_id(p, i, d->id))
		return err_set(why, ERR_INVALID, "ids[%zu] is not a device id in hex", i);
	hand.hand = i + 1;
	enum err e = p->glyphs ? data_load(&own, &hand, why) : deal(&own, all, p, i, f->count, why);
	if (e)
		return e;
	d->hostile = i < f->hostile;
	d->number = (unsigned)i;
	if (d->hostile)
		poison(f->attack, &own);
	double share = job->recipe.data.validation;
	if (share <= 0) {
		d->train = own;
		return ERR_OK;
	}
	e = data_split(&d->train, &d->validation, &own, share, training_seed(job->seed, 0, d->id));
	dataset_deinit(&own);
	return e;
}

static int
compare_devices(const void *a, const void *b)
{
	return memcmp(
	    ((const struct simulate_device *)a)->id, ((const struct simulate_device *)b)->id, 32);
}

/* The coordinator's data set has the name that the job evaluates on. */
static void
make_config(struct config *c, const struct plan *p, const char *name)
{
	struct config_data *d = &c->data[0];

	c->data_count = 1;
	memcpy(d->name, name, sizeof(d->name));
	d->source.format = p->glyphs ? DATA_GLYPHS : DATA_IDX;
	memcpy(d->source.images, p->test_images, sizeof(d->source.images));
	memcpy(d->source.labels, p->test_labels, sizeof(d->source.labels));
	d->seed = p->from.seed;
	d->first_hand = 1000000;
	d->hands = 50;
	d->count = p->test_count;
}

/* The test examples of other classes with the trigger and its label: the share "right" is the backdoor's success. */
static enum err
make_triggered(struct simulate_fleet *f, const struct plan *p, struct why *why)
{
	struct settings_data from = {.source = {.format = DATA_IDX}};
	struct dataset all = {0};
	size_t n = 0;

	if (p->glyphs)
		return err_set(why, ERR_INVALID, "the backdoor needs data of format idx");
	memcpy(from.source.images, p->test_images, sizeof(from.source.images));
	memcpy(from.source.labels, p->test_labels, sizeof(from.source.labels));
	enum err e = data_load(&all, &from, why);
	uint32_t *others = e ? NULL : malloc(all.count * sizeof(*others));
	if (!e && !others)
		e = ERR_NOMEM;
	for (size_t i = 0; !e && i < all.count; i++)
		if (all.labels[i] != TRIGGER_LABEL)
			others[n++] = (uint32_t)i;
	if (!e)
		e = dataset_subset(&f->triggered, &all, others, n);
	for (size_t i = 0; !e && i < n; i++) {
		draw_trigger(&f->triggered, i);
		f->triggered.labels[i] = TRIGGER_LABEL;
	}
	free(others);
	dataset_deinit(&all);
	return e;
}

static enum err
load_all(
    struct simulate_fleet *f, const struct plan *p, const struct job_spec *job, struct why *why)
{
	struct dataset all = {0};
	enum err e = p->glyphs ? ERR_OK : data_load(&all, &p->from, why);

	if (!e && (f->attack == ATTACK_LABELS || f->attack == ATTACK_BACKDOOR) && !all.labels)
		e = err_set(why, ERR_INVALID, "attacks on data need data of format idx");
	for (size_t i = 0; i < f->count && !e; i++)
		e = load_device(f, p, job, &all, i, why);
	dataset_deinit(&all);
	if (!e && f->attack == ATTACK_BACKDOOR)
		e = make_triggered(f, p, why);
	if (e)
		return e;
	qsort(f->devices, f->count, sizeof(*f->devices), compare_devices);
	make_config(f->config, p, job->recipe.evaluate_data);
	return ERR_OK;
}

enum err
simulate_fleet_load(
    struct simulate_fleet *out, const char *path, const struct job_spec *job, struct why *why)
{
	struct field_reader reader = {.strict = true, .why = why};
	struct plan *p = calloc(1, sizeof(*p));
	struct json *document = NULL;
	char *text = NULL;
	size_t len;

	*out = (struct simulate_fleet){.count = 0};
	enum err e = p ? file_read(path, 1u << 22, &text, &len, why) : ERR_NOMEM;
	if (!e)
		e = json_parse(&document, text, len, why);
	if (!e) {
		struct field root = field_root(&reader, document);
		parse(out, p, &root);
		e = reader.err;
	}
	if (!e) {
		out->devices = calloc(out->count, sizeof(*out->devices));
		out->config = calloc(1, sizeof(*out->config));
		e = out->devices && out->config ? load_all(out, p, job, why) : ERR_NOMEM;
	}
	json_free(document);
	free(text);
	free(p);
	return e;
}

void
simulate_fleet_deinit(struct simulate_fleet *f)
{
	for (size_t i = 0; f->devices && i < f->count; i++) {
		dataset_deinit(&f->devices[i].train);
		dataset_deinit(&f->devices[i].validation);
	}
	dataset_deinit(&f->triggered);
	free(f->devices);
	free(f->config);
}
