#include "protocol.h"

#include <stdio.h>

#include "json.h"

static enum err
read_object(struct protocol_line *out, const struct json *doc, struct why *why)
{
	const struct json *ready = json_get(doc, "ready"), *done = json_get(doc, "done");
	bool is_ready = false;

	if (json_kind(doc) != JSON_OBJECT)
		return err_set(why, ERR_INVALID, "is no object");
	if (ready && !json_bool(ready, &is_ready))
		return err_set(why, ERR_INVALID, "\"ready\" is neither true nor false");
	if (done && !json_string(done))
		return err_set(why, ERR_INVALID, "\"done\" names no task");
	if (done) {
		out->kind = PROTOCOL_DONE;
		snprintf(out->task, sizeof(out->task), "%s", json_string(done));
	} else if (is_ready) {
		out->kind = PROTOCOL_READY;
	}
	return ERR_OK;
}

enum err
protocol_read(struct protocol_line *out, const char *line, size_t len, struct why *why)
{
	struct json *doc = NULL;
	enum err e = json_parse(&doc, line, len, why);

	*out = (struct protocol_line){.kind = PROTOCOL_OTHER};
	if (!e)
		e = read_object(out, doc, why);
	json_free(doc);
	return e;
}

/* Takes the object. */
static enum err
put_line(struct buf *out, struct json *doc)
{
	enum err e = json_print(out, doc, false);

	json_free(doc);
	return e ? e : buf_append(out, "\n", 1);
}

enum err
protocol_task(struct buf *out, const char *task, const char *kind, const char *directory)
{
	struct json *doc = json_object();

	json_add_string(doc, "task", task);
	json_add_string(doc, "kind", kind);
	json_add_string(doc, "directory", directory);
	return put_line(out, doc);
}

enum err
protocol_finish(struct buf *out, const char *task)
{
	struct json *doc = json_object();

	json_add_string(doc, "finish", task);
	return put_line(out, doc);
}
