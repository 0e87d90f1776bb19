#include "result.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "identity.h"
#include "json.h"
#include "tensors_file.h"

#define REPORT_ROOM (64u << 10)

static enum err
write_report(const char *directory, const struct json *doc, struct why *why)
{
	char path[PATH_MAX];
	struct buf text;
	enum err e = identity_path(path, directory, "report.json", why);

	buf_init(&text, REPORT_ROOM);
	if (!e && (e = json_print(&text, doc, true)))
		err_set(why, e, "report.json cannot be written");
	if (!e)
		e = file_write(path, text.data, text.len, 0600, why);
	buf_deinit(&text);
	return e;
}

/* Trained tensors and those of this device alone. */
static enum err
write_after(const struct work *w, const char *directory, struct why *why)
{
	char path[PATH_MAX];
	struct tensors_file f;
	enum err e = identity_path(path, directory, "after.safetensors", why);

	if (e)
		return e;
	if (tensors_file_init(&f, w->table.count))
		return err_set(why, ERR_NOMEM, "no memory for the tensors");
	for (size_t i = 0; i < w->table.count; i++) {
		const struct tensor *t = &w->table.items[i];
		if (t->in_delta || t->role == TENSOR_LOCAL)
			tensors_file_add(&f, t, w->weights + t->begin);
	}
	e = tensors_file_write(&f, path, why);
	tensors_file_deinit(&f);
	return e;
}

/* What travels on in the signed report. */
static enum err
begin_report(struct json **doc, const struct trainer_out *out, struct why *why)
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
put_finish(struct json *doc, const struct finish *f)
{
	json_add_u64(doc, "examples", f->examples);
	json_add_u64(doc, "steps", f->steps);
	json_add_double(doc, "loss", f->loss);
	if (isfinite(f->accuracy))
		json_add_double(doc, "accuracy", f->accuracy);
	json_add_bool(doc, "partial", f->partial);
	json_add_u64(doc, "optimizer", f->optimizer);
	json_add_double(doc, "normaliser", f->normaliser);
}

enum err
result_write(
    const struct directory *d, const char *path, const struct trainer_out *out, struct why *why)
{
	struct json *doc = NULL;
	bool trains = d->work.task.kind == TASK_TRAIN;
	enum err e = trains ? write_after(&d->work, path, why) : ERR_OK;

	if (!e)
		e = begin_report(&doc, out, why);
	if (!e && trains)
		put_finish(doc, &out->finish);
	if (!e)
		e = write_report(path, doc, why);
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
