#include "task_file.h"

#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "data_source.h"
#include "err.h"
#include "file.h"
#include "hex.h"
#include "json.h"
#include "settings.h"
#include "shard.h"
#include "training.h"
#include "wild.h"

#define TASK_FILE_MAX (2u << 20)

static void
add_text(struct json *o, const char *key, const char *text)
{
	if (*text)
		json_add_string(o, key, text);
}

/* The owner's settings for the data set; the agent's own files have their full path. */
static struct json *
describe_data(const struct settings_data *d)
{
	const struct data_source *from = &d->source;
	struct json *o = json_object();

	json_add_string(o, "name", d->name);
	json_add_string(o, "format", data_source_formats[from->format]);
	add_text(o, "images", from->images);
	add_text(o, "labels", from->labels);
	add_text(o, "x", from->x);
	add_text(o, "y", from->y);
	add_text(o, "path", from->path);
	add_text(o, "vocabulary", from->vocabulary);
	add_text(o, "columns", from->columns);
	add_text(o, "classes", from->classes);
	if (from->format == DATA_CSV)
		json_add_string(o, "label", from->label);
	if (from->format == DATA_CSV || from->regression)
		json_add_string(o, "kind", data_source_kinds[from->regression]);
	if (from->format == DATA_GLYPHS) {
		json_add_u64(o, "hand", d->hand);
		json_add_u64(o, "count", d->glyph_count);
		json_add_double(o, "skew", d->skew);
	}
	json_add_u64(o, "seed", d->seed);
	return o;
}

static struct json *
describe_shard(const struct shard *s)
{
	struct json *o = json_object();

	json_add_u64(o, "index", s->index);
	json_add_u64(o, "count", s->count);
	json_add_string(o, "partition", shard_partition_names[s->partition]);
	/* What version 402de29 called it. */
	if (s->partition <= SHARD_LABEL)
		json_add_string(o, "split", shard_partition_names[s->partition]);
	else
		json_add_double(o, "alpha", s->alpha);
	add_text(o, "column", s->column);
	json_add_u64(o, "seed", s->seed);
	return o;
}

static void
put_keys(struct json *doc, const struct task_file *f)
{
	const struct work *w = f->work;
	uint64_t seed = training_seed(w->task.seed, w->task.round, f->device);

	if (f->data) {
		json_add(doc, "data", describe_data(f->data));
		json_add(doc, "shard", describe_shard(&f->data->shard));
	}
	add_text(doc, "examples", f->examples);
	json_add_string(doc, "base", f->base);
	add_text(doc, "local", f->local);
	add_text(doc, "variates", f->variates);
	add_text(doc, "validation", f->validation);
	add_text(doc, "share", f->share);
	add_text(doc, "kept", f->kept);
	if (*f->kept) {
		json_add_u64(doc, "kept_round", f->kept_round);
		json_add_string(doc, "kept_model", f->kept_model);
	}
	json_add_u64(
	    doc, "kept_bytes", f->kept_bytes < JSON_INT_MAX ? f->kept_bytes : JSON_INT_MAX);
	if (f->seconds > 0)
		json_add_double(doc, "seconds", f->seconds);
	char device[65];
	hex_encode(device, f->device, 32);
	json_add_string(doc, "device", device);
	json_add_u64(doc, "local_seed", seed % JSON_INT_MAX);
	json_add_double(doc, "rate", work_rate(w));
	json_add_u64(doc, "threads", f->threads);
	if (f->kernels && *f->kernels)
		json_add_string(doc, "kernels", f->kernels);
}

enum err
task_file_write(int directory, const struct task_file *f, struct why *why)
{
	struct json *doc = NULL;
	struct buf text;
	enum err e = json_parse(&doc, f->work->text, strlen(f->work->text), why);

	if (e)
		return e;
	buf_init(&text, TASK_FILE_MAX);
	put_keys(doc, f);
	e = json_print(&text, doc, true);
	json_free(doc);
	if (e)
		err_set(why, e, "task.json cannot be written");
	int fd = -1;
	if (!e)
		e = wild_create(&fd, directory, "task.json", why);
	if (!e && (e = file_pwrite(fd, text.data, text.len, 0)))
		err_errno(why, "write task.json");
	if (fd >= 0)
		close(fd);
	buf_deinit(&text);
	return e;
}
