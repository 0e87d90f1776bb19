#include "recipe_text.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "json.h"

/* "upload" is the last, so that a task may name one of several codecs behind what all tasks share. */
enum key { MODEL, TENSORS, TRAINER, PARAMS, DATA, LOCAL, PARALLEL, EVALUATE, UPLOAD, KEYS };

static const char *const keys[KEYS] = {[MODEL] = "model",
    [TENSORS] = "tensors",
    [TRAINER] = "trainer",
    [PARAMS] = "params",
    [DATA] = "data",
    [LOCAL] = "local",
    [PARALLEL] = "parallel",
    [EVALUATE] = "evaluate",
    [UPLOAD] = "upload"};

struct span {
	size_t at, len; /* of a value; 0, 0: the key is absent */
};

struct recipe_text {
	atomic_uint users;
	size_t len;
	size_t shared; /* bytes before the comma of "upload", or before the last brace */
	struct span params, upload;
	char text[];
};

/* How far the keys are printed. */
struct progress {
	struct buf text;
	struct span spans[KEYS];
	size_t shared;
};

static enum err
print_key(struct progress *p, size_t i, const struct json *v)
{
	p->shared = p->text.len;
	if (!v)
		return ERR_OK;
	enum err e = buf_printf(&p->text, "%s\"%s\":", p->text.len > 1 ? "," : "", keys[i]);
	p->spans[i].at = p->text.len;
	if (!e)
		e = json_print(&p->text, v, false);
	p->spans[i].len = p->text.len - p->spans[i].at;
	return e;
}

static enum err
make(struct recipe_text **out, const struct progress *p)
{
	struct recipe_text *t = malloc(sizeof(*t) + p->text.len + 1);

	if (!t)
		return ERR_NOMEM;
	atomic_init(&t->users, 1);
	t->len = p->text.len;
	t->shared = p->shared;
	t->params = p->spans[PARAMS];
	t->upload = p->spans[UPLOAD];
	memcpy(t->text, p->text.data, p->text.len + 1);
	*out = t;
	return ERR_OK;
}

enum err
recipe_text_new(struct recipe_text **out, const struct json *doc, bool central, struct why *why)
{
	struct progress p = {.shared = 0};

	*out = NULL;
	buf_init(&p.text, RECIPE_TEXT_MAX);
	enum err e = buf_append(&p.text, "{", 1);
	for (size_t i = 0; !e && i < KEYS; i++)
		e = print_key(&p, i, central && i == EVALUATE ? NULL : json_get(doc, keys[i]));
	if (!e)
		e = buf_append(&p.text, "}", 1);
	if (!e)
		e = make(out, &p);
	buf_deinit(&p.text);
	return e ? err_set(why, e, "the recipe is larger than %u bytes", RECIPE_TEXT_MAX) : ERR_OK;
}

struct recipe_text *
recipe_text_hold(struct recipe_text *t)
{
	if (t)
		atomic_fetch_add(&t->users, 1);
	return t;
}

void
recipe_text_free(struct recipe_text *t)
{
	if (t && atomic_fetch_sub(&t->users, 1) == 1)
		free(t);
}

const char *
recipe_text_all(const struct recipe_text *t)
{
	return t->text;
}

size_t
recipe_text_bytes(const struct recipe_text *t)
{
	return t->len;
}

char *
recipe_text_params(const struct recipe_text *t)
{
	return t->params.len ? strndup(t->text + t->params.at, t->params.len) : strdup("{}");
}

/* The object under "upload", anew. */
static enum err
print_upload(struct buf *out, const struct recipe_text *t, const char *codec)
{
	struct json *have = NULL, *upload = json_object();
	enum err e = ERR_OK;

	if (t->upload.len)
		e = json_parse(&have, t->text + t->upload.at, t->upload.len, NULL);
	for (const struct json *v = json_first(have); v; v = json_next(v))
		if (strcmp(json_key(v), "codec") != 0)
			json_add(upload, json_key(v), json_copy(v));
	json_add_string(upload, "codec", codec);
	if (!e)
		e = json_print(out, upload, false);
	json_free(have);
	json_free(upload);
	return e;
}

enum err
recipe_text_print(struct buf *out, const struct recipe_text *t, const char *codec)
{
	if (!t)
		return ERR_INVALID;
	if (!codec[0])
		return buf_append(out, t->text, t->len);
	enum err e = buf_append(out, t->text, t->shared);
	if (!e)
		e = buf_printf(out, "%s\"upload\":", t->shared > 1 ? "," : "");
	if (!e)
		e = print_upload(out, t, codec);
	return e ? e : buf_append(out, "}", 1);
}
