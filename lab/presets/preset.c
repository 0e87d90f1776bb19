#include "preset.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "job.h"
#include "maker.h"
#include "sequence.h"
#include "text_file.h"
#include "vision.h"

#define SETTINGS_MAX 12

#define PICTURES(side, classes) \
	{"side", 1, 1024, side}, {"channels", 1, 1024, 3}, \
	{ \
		"classes", 2, 4096, classes \
	}

static const struct preset_setting resnet_gn[] = {
    PICTURES(32, 10), {"groups", 1, 64, 2}, {.name = NULL}};
static const struct preset_setting resnet_bn[] = {
    PICTURES(32, 10), {"groups", 0, 0, 0}, {.name = NULL}};
static const struct preset_setting resnet20_gn[] = {
    PICTURES(32, 10), {"groups", 1, 16, 2}, {.name = NULL}};
static const struct preset_setting mobilenet[] = {
    PICTURES(96, 2), {"width", 10, 200, 100}, {.name = NULL}};
static const struct preset_setting ds_cnn[] = {{"side", 1, 1024, 10}, {"channels", 1, 16, 1},
    {"classes", 2, 4096, 12}, {"width", 8, 1024, 64}, {.name = NULL}};
static const struct preset_setting char_lstm[] = {{"vocabulary", 2, 1000000, 256},
    {"window", 1, 65536, 80}, {"embedding", 1, 4096, 8}, {"hidden", 1, 8192, 256},
    {"layers", 1, 4, 2}, {"last", 0, 1, 0}, {.name = NULL}};
static const struct preset_setting gpt[] = {{"vocabulary", 2, 1000000, 256},
    {"window", 1, 65536, 128}, {"width", 1, 65536, 128}, {"layers", 1, 24, 4},
    {"heads", 1, 1024, 4}, {"tied", 0, 1, 0}, {.name = NULL}};
static const struct preset_setting autoencoder[] = {
    {"features", 1, 65536, 640}, {"width", 1, 65536, 128}, {"narrow", 1, 65536, 8}, {.name = NULL}};

static const struct preset presets[] = {
    {"resnet18-gn", "ResNet-18 with group norm, torchvision's names", resnet_gn, vision_resnet18,
	PRESET_PICTURES, "cross_entropy", 0},
    {"resnet18-bn", "ResNet-18 with batch norm: torchvision's resnet18", resnet_bn, vision_resnet18,
	PRESET_PICTURES, "cross_entropy", 0},
    {"resnet20-gn", "ResNet-20 for small pictures, with group norm", resnet20_gn, vision_resnet20,
	PRESET_PICTURES, "cross_entropy", 0},
    {"mobilenetv2", "MobileNetV2: torchvision's; width is in hundredths", mobilenet,
	vision_mobilenet, PRESET_PICTURES, "cross_entropy", 0},
    {"ds-cnn", "keyword spotting, MLPerf Tiny's DS-CNN", ds_cnn, vision_ds_cnn, PRESET_PICTURES,
	"cross_entropy", 49},
    {"char-lstm", "next characters by LSTMs", char_lstm, sequence_char_lstm, PRESET_TOKENS,
	"cross_entropy", 0},
    {"gpt", "a small GPT-2", gpt, sequence_gpt, PRESET_TOKENS, "cross_entropy", 0},
    {"autoencoder", "anomalies, MLPerf Tiny's autoencoder", autoencoder, sequence_autoencoder,
	PRESET_FEATURES, "mse", 0},
    {.name = NULL},
};

const struct preset *
preset_list(void)
{
	return presets;
}

static enum err
apply(struct preset_setting *to, const char *preset, const struct json *settings, struct why *why)
{
	for (const struct json *v = json_first(settings); v; v = json_next(v)) {
		struct preset_setting *s = to;
		uint64_t number;
		while (s->name && strcmp(s->name, json_key(v)) != 0)
			s++;
		if (!s->name)
			return err_set(why, ERR_INVALID, "preset %s has no setting \"%.60s\"",
			    preset, json_key(v));
		if (!json_u64(v, &number) || number < s->min || number > s->max)
			return err_set(why, ERR_INVALID,
			    "preset %s: %s must be a whole number from %u to %u", preset, s->name,
			    s->min, s->max);
		s->value = (uint32_t)number;
	}
	return ERR_OK;
}

static struct json *
data_of(const struct maker *m, const struct preset *e)
{
	struct json *data = json_object(), *shape = json_array();

	if (e->kind == PRESET_TOKENS) {
		json_free(shape);
		json_add_u64(data, "window", maker_get(m, "window"));
		return data;
	}
	if (e->kind == PRESET_FEATURES) {
		json_push(shape, json_new_u64(maker_get(m, "features")));
	} else {
		uint32_t side = maker_get(m, "side");
		json_push(shape, json_new_u64(maker_get(m, "channels")));
		json_push(shape, json_new_u64(e->height ? e->height : side));
		json_push(shape, json_new_u64(side));
	}
	json_add(data, "shape", shape);
	if (e->kind == PRESET_PICTURES)
		json_add_u64(data, "classes", maker_get(m, "classes"));
	return data;
}

static const struct preset *
find(const char *name)
{
	const struct preset *p = presets;

	while (p->name && strcmp(p->name, name) != 0)
		p++;
	return p->name ? p : NULL;
}

enum err
preset_model(struct json **model, struct json **data, const char *name, const struct json *settings,
    struct why *why)
{
	struct preset_setting values[SETTINGS_MAX];
	const struct preset *p = find(name);
	size_t n = 0;

	if (!p)
		return err_set(why, ERR_NOTFOUND,
		    "no preset is called \"%.60s\"; `rivulet preset` lists them", name);
	do
		values[n] = p->settings[n];
	while (values[n++].name);
	enum err e = apply(values, name, settings, why);
	if (e)
		return e;
	struct maker m = {.layers = json_array(), .settings = values};
	p->make(&m);
	*model = json_object();
	json_add(*model, "layers", m.layers);
	json_add_string(*model, "loss", p->loss);
	if (p->kind == PRESET_FEATURES)
		json_add_string(*model, "target", "input");
	if (data)
		*data = data_of(&m, p);
	return ERR_OK;
}

static void
copy_others(struct json *to, const struct json *from, const char *const *but)
{
	for (const struct json *v = json_first(from); v; v = json_next(v)) {
		bool own = json_get(to, json_key(v)) != NULL;
		for (const char *const *b = but; *b; b++)
			own = own || strcmp(json_key(v), *b) == 0;
		if (!own)
			json_add(to, json_key(v), json_copy(v));
	}
}

/* The document's own words win, but for layers. */
static struct json *
join_models(const struct json *made, const struct json *said)
{
	static const char *const not_said[] = {"preset", "set", "layers", NULL};
	static const char *const all[] = {NULL};
	struct json *out = json_object();

	json_add(out, "layers", json_copy(json_get(made, "layers")));
	copy_others(out, said, not_said);
	copy_others(out, made, all);
	return out;
}

static struct json *
join_documents(const struct json *doc, const struct json *model, const struct json *data)
{
	static const char *const all[] = {NULL};
	struct json *out = json_object();

	for (const struct json *v = json_first(doc); v; v = json_next(v)) {
		struct json *copy = NULL;
		if (strcmp(json_key(v), "model") == 0) {
			copy = join_models(model, v);
		} else {
			copy = json_copy(v);
			if (strcmp(json_key(v), "data") == 0 && json_kind(v) == JSON_OBJECT)
				copy_others(copy, data, all);
		}
		json_add(out, json_key(v), copy);
	}
	return out;
}

static enum err
print(const struct json *v, char **text, size_t *len, struct why *why)
{
	struct buf out;

	buf_init(&out, JOB_DOCUMENT_MAX);
	enum err e = json_print(&out, v, true);
	char *made = e ? NULL : malloc(out.len + 1);
	if (made) {
		memcpy(made, buf_str(&out), out.len + 1);
		free(*text);
		*text = made;
		*len = out.len;
	}
	buf_deinit(&out);
	return made ? ERR_OK
		    : err_set(why, e ? e : ERR_NOMEM, "the preset's layers make the job too large");
}

enum err
preset_expand(char **text, size_t *len, struct why *why)
{
	struct json *doc = NULL, *model = NULL, *data = NULL;

	/* What is wrong with it, its own parser says better. */
	if (json_parse(&doc, *text, *len, NULL))
		return ERR_OK;
	const struct json *said = json_get(doc, "model"), *name = json_get(said, "preset");
	enum err e = ERR_OK;
	if (name && json_get(said, "layers"))
		e = err_set(why, ERR_INVALID, "model: either \"preset\" or \"layers\"");
	else if (name && !json_string(name))
		e = err_set(why, ERR_INVALID, "model.preset: must be a name");
	else if (name)
		e = preset_model(&model, &data, json_string(name), json_get(said, "set"), why);
	if (!e && name) {
		struct json *whole = join_documents(doc, model, data);
		e = print(whole, text, len, why);
		json_free(whole);
	}
	json_free(model);
	json_free(data);
	json_free(doc);
	return e;
}

static enum err
read_file(const char *path, char **text, size_t *len, struct why *why)
{
	return text_file_read(path, JOB_DOCUMENT_MAX, text, len, why);
}

enum err
preset_read(
    const char *path, const struct preset_edit *edit, char **text, size_t *len, struct why *why)
{
	enum err e = read_file(path, text, len, why);

	if (e)
		return e;
	if (edit)
		e = edit->change(edit->ctx, text, len, why);
	if (!e)
		e = preset_expand(text, len, why);
	if (e) {
		free(*text);
		*text = NULL;
	}
	return e;
}

enum err
preset_read_base(const char *path, struct json **out, struct why *why)
{
	char *text = NULL;
	size_t len = 0;

	*out = NULL;
	enum err e = read_file(path, &text, &len, why);
	if (!e)
		e = json_parse(out, text, len, why);
	free(text);
	if (!e && json_kind(*out) != JSON_OBJECT)
		e = err_set(why, ERR_INVALID, "%.200s holds no job document", path);
	return e;
}
