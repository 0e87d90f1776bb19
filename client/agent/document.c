#include "document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "hash.h"
#include "hex.h"
#include "job.h"
#include "json.h"
#include "session.h"
#include "tensor.h"
#include "transport.h"

#define MESSAGE_MAX (2u << 20)

void
document_deinit(struct document *d)
{
	recipe_text_free(d->recipe);
	memset(d, 0, sizeof(*d));
}

/* The tree is taken over. */
static enum err
print(char **out, struct json *v)
{
	struct buf text;

	buf_init(&text, MESSAGE_MAX);
	enum err e = json_print(&text, v, false);
	*out = e ? NULL : strdup(buf_str(&text));
	buf_deinit(&text);
	json_free(v);
	return e ? e : *out ? ERR_OK : ERR_NOMEM;
}

static enum err
read_tree(struct document *out, const struct json *doc, struct why *why)
{
	const char *name = json_string(json_get(doc, "name"));
	struct recipe recipe;

	if (!name || strlen(name) >= sizeof(out->name))
		return err_set(why, ERR_INVALID, "the job's document has no name");
	strcpy(out->name, name);
	enum err e = recipe_parse(&recipe, doc, false, why);
	if (e)
		return e;
	out->recipe = recipe_text_hold(recipe.text);
	out->upload = recipe.upload;
	recipe_deinit(&recipe);
	return ERR_OK;
}

enum err
document_read(struct document *out, const char *job, const char *text, size_t len, struct why *why)
{
	uint8_t digest[HASH_LEN], id[16];
	struct json *doc = NULL;

	*out = (struct document){.recipe = NULL};
	hash_sha256(digest, text, len);
	if (!hex_decode(id, sizeof(id), job, strlen(job)) || memcmp(digest, id, sizeof(id)) != 0)
		return err_set(why, ERR_CORRUPT,
		    "what the coordinator gives as the document of job %.32s has another hash",
		    job);
	enum err e = json_parse(&doc, text, len, why);
	if (!e)
		e = read_tree(out, doc, why);
	json_free(doc);
	if (e)
		document_deinit(out);
	else
		snprintf(out->job, sizeof(out->job), "%s", job);
	return e;
}

enum err
document_fetch(struct document *out, struct session *s, const char *job, struct why *why)
{
	struct transport_answer answer;
	char path[64];

	*out = (struct document){.recipe = NULL};
	snprintf(path, sizeof(path), "/v1/jobs/%.32s/document", job);
	const struct session_call call = {.path = path,
	    .attempts = 2,
	    .request = {.method = "GET", .answer_max = JOB_DOCUMENT_MAX}};
	enum err e = session_do(s, &call, &answer, why);
	if (!e)
		e = session_problem(&answer, NULL, why);
	if (!e)
		e = document_read(out, job, buf_str(&answer.body), answer.body.len, why);
	transport_answer_deinit(&answer);
	return e;
}

/* The recipe as a task carries it: with the one codec to be used. */
static enum err
recipe_of(const struct document *d, const char *codec, struct json **out, struct why *why)
{
	struct buf text;

	if (!recipe_upload_takes(&d->upload, codec))
		return err_set(
		    why, ERR_INVALID, "the task wants codec %s, the job does not", codec);
	buf_init(&text, MESSAGE_MAX);
	enum err e = recipe_text_print(&text, d->recipe, d->upload.codec_count > 1 ? codec : "");
	if (!e)
		e = json_parse(out, buf_str(&text), text.len, why);
	buf_deinit(&text);
	return e;
}

/* The task's message with another recipe. */
static enum err
rewrite(const struct work *w, struct json *recipe, char **out, struct why *why)
{
	struct json *message = NULL, *changed = json_object();

	enum err e = json_parse(&message, w->text, strlen(w->text), why);
	for (const struct json *v = json_first(message); v; v = json_next(v))
		if (strcmp(json_key(v), "recipe") != 0)
			json_add(changed, json_key(v), json_copy(v));
	json_add(changed, "recipe", recipe);
	json_free(message);
	if (!e)
		return print(out, changed);
	json_free(changed);
	return e;
}

enum err
document_apply(const struct document *d, struct work *w, struct why *why)
{
	struct json *recipe = NULL;
	struct task task;
	char *text = NULL;

	enum err e = recipe_of(d, w->task.recipe.codec, &recipe, why);
	if (!e)
		e = rewrite(w, recipe, &text, why);
	if (!e)
		e = messages_task_decode(&task, text, strlen(text), why);
	if (e) {
		free(text);
		return e;
	}
	messages_task_deinit(&w->task);
	free(w->text);
	w->task = task;
	w->text = text;
	return ERR_OK;
}
