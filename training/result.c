#include "result.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "json.h"
#include "tensors_file.h"

#define REPORT_ROOM (64u << 10)

static enum err
write_report(const char *directory, const struct json *doc, struct why *why)
{
	char path[PATH_MAX];
	struct buf text;
	enum err e = directory_file(path, directory, "report.json", why);

	buf_init(&text, REPORT_ROOM);
	if (!e && (e = json_print(&text, doc, true)))
		err_set(why, e, "report.json cannot be written");
	if (!e)
		e = file_write(path, text.data, text.len, 0600, why);
	buf_deinit(&text);
	return e;
}

static enum err
read_after(const void *context, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	const struct training_source *after = context;

	return after->read(after->context, t, at, len, out);
}

enum err
result_take(void *directory, const struct training_source *after, struct why *why)
{
	const struct directory *d = directory;
	const struct tensor_table *table = &d->base.table;
	char path[PATH_MAX];
	struct tensors_file f;
	enum err e = directory_file(path, d->path, "after.safetensors", why);

	if (e)
		return e;
	if (tensors_file_init(&f, table->count))
		return err_set(why, ERR_NOMEM, "no memory for the tensors");
	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *t = &table->items[i];
		const struct tensors_file_bytes bytes = {read_after, after, t};
		if (t->in_delta || t->role == TENSOR_LOCAL)
			tensors_file_add_bytes(&f, &bytes);
	}
	e = tensors_file_write(&f, path, why);
	tensors_file_deinit(&f);
	return e;
}

/* What travels on in the signed report. */
static enum err
begin_report(struct json **doc, const struct training_out *out, struct why *why)
{
	struct buf text;
	enum err e = ERR_OK;

	if (!out->has_report) {
		*doc = json_object();
		return ERR_OK;
	}
	buf_init(&text, REPORT_ROOM);
	e = messages_report_encode(&text, &out->report);
	if (!e)
		e = json_parse(doc, buf_str(&text), text.len, why);
	buf_deinit(&text);
	return e ? err_set(why, e, "the report cannot be written") : ERR_OK;
}

static void
put_training(struct json *doc, const struct training_out *out)
{
	const struct train_result *r = &out->result;

	json_add_u64(doc, "examples", r->examples);
	json_add_u64(doc, "steps", r->steps);
	json_add_double(doc, "loss", r->loss);
	if (isfinite(r->accuracy))
		json_add_double(doc, "accuracy", r->accuracy);
	json_add_bool(doc, "partial", r->partial);
	json_add_u64(doc, "optimizer", out->optimizer);
	json_add_double(doc, "normaliser", r->normaliser);
}

enum err
result_report(const struct directory *d, const struct training_out *out, struct why *why)
{
	struct json *doc = NULL;
	enum err e = begin_report(&doc, out, why);

	if (!e && d->task.kind == TASK_TRAIN)
		put_training(doc, out);
	if (!e)
		e = write_report(d->path, doc, why);
	json_free(doc);
	return e;
}

enum err
result_give_back(const char *path, enum abort_reason reason, const char *text, struct why *why)
{
	const char *word = abort_reason_name(reason);
	struct json *doc = json_object(), *abort = json_object();

	json_add_string(abort, "reason", *word ? word : abort_reason_name(ABORT_TRAINER_FAILED));
	json_add_string(abort, "text", text);
	json_add(doc, "abort", abort);
	enum err e = write_report(path, doc, why);
	json_free(doc);
	return e;
}
