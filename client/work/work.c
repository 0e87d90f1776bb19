#include "work.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backoff.h"
#include "codec.h"
#include "file.h"
#include "model_head.h"
#include "schedule.h"

#define TILE 4096 /* elements read at a time */
#define DEADLINE_SHARE 0.9 /* of the time left; the rest is for encoding and sending */

static enum err
read_head(struct work *w, int fd, struct why *why)
{
	struct model_head head = {.data_at = 0};

	enum err e =
	    model_head_read(&head, fd, w->task.recipe.rules, w->task.recipe.rule_count, why);
	w->file_bytes = head.file_bytes;
	w->data_at = head.data_at;
	w->table = head.table;
	return e;
}

static enum err
read_weights(const struct work *w, int fd, uint8_t **out, struct why *why)
{
	*out = malloc((size_t)w->table.bytes);
	if (!*out)
		return err_set(why, ERR_NOMEM, "no memory for %llu bytes of weights",
		    (unsigned long long)w->table.bytes);
	if (file_pread(fd, *out, (size_t)w->table.bytes, w->data_at)) {
		free(*out);
		*out = NULL;
		return err_set(why, ERR_CORRUPT, "%s cannot be read", w->path);
	}
	return ERR_OK;
}

/* Vectors as large as the model: the weights, with control variates also what is added to gradients. */
static uint64_t
copies_of(const struct work *w)
{
	return work_variates(w) ? 2 : 1;
}

static enum err
load_weights(struct work *w, int fd, uint64_t memory_bytes, struct why *why)
{
	if (memory_bytes && w->table.bytes > memory_bytes / copies_of(w))
		return err_set(why, ERR_LIMIT, "a model of %llu bytes needs more than memory_bytes",
		    (unsigned long long)w->table.bytes);
	return read_weights(w, fd, &w->weights, why);
}

static enum err
keep_files(struct work *w, int fd, struct why *why)
{
	w->files = calloc(1, sizeof(*w->files));
	if (!w->files)
		return err_set(why, ERR_NOMEM, "no memory for a task");
	w->files->local = -1;
	w->files->base = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return w->files->base < 0 ? err_errno(why, "open %s again", w->path) : ERR_OK;
}

enum err
work_load(struct work *w, const char *path, uint64_t memory_bytes, struct why *why)
{
	if (path != w->path)
		memcpy(w->path, path, strlen(path) + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = read_head(w, fd, why);
	if (!e)
		e = w->streams ? keep_files(w, fd, why) : load_weights(w, fd, memory_bytes, why);
	close(fd);
	if (e)
		return e;
	w->params = recipe_text_params(w->task.recipe.text);
	w->recipe = strdup(recipe_text_all(w->task.recipe.text));
	return w->params && w->recipe ? ERR_OK : ERR_NOMEM;
}

static void
close_vector(struct work_vector *v)
{
	if (v->in_file)
		close(v->fd);
}

static void
close_files(struct work_files *f)
{
	if (!f)
		return;
	if (f->base >= 0)
		close(f->base);
	if (f->local >= 0)
		close(f->local);
	for (size_t i = 0; i < f->left_count; i++)
		close(f->left[i].fd);
	free(f->left);
	free(f->after);
	free(f);
}

void
work_deinit(struct work *w)
{
	messages_task_deinit(&w->task);
	tensor_table_deinit(&w->table);
	free(w->text);
	free(w->weights);
	free(w->params);
	free(w->recipe);
	close_files(w->files);
	close_vector(&w->server);
	close_vector(&w->own);
	free(w->shift);
	memset(w, 0, sizeof(*w));
}

/* Seconds until the task's deadline; negative after the deadline. */
static double
seconds_left(const struct work *w)
{
	return w->task.deadline_s - (backoff_now() - w->came_at);
}

double
work_budget(const struct work *w, double own)
{
	double left = seconds_left(w) * DEADLINE_SHARE;

	if (left <= 0)
		left = 0.001;
	return own > 0 && own < left ? own : left;
}

/* --- reading */

/* Where local tensors stand in their file. */
static uint64_t
local_place(const struct work *w, const struct tensor *t)
{
	uint64_t at = w->files->local_at;

	for (size_t i = 0; &w->table.items[i] != t; i++)
		if (w->table.items[i].role == TENSOR_LOCAL)
			at += w->table.items[i].end - w->table.items[i].begin;
	return at;
}

enum err
work_read(const struct work *w, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	const struct work_files *f = w->files;

	if (!f) {
		memcpy(out, w->weights + t->begin + at, len);
		return ERR_OK;
	}
	const struct work_place *place = f->after ? &f->after[t - w->table.items] : NULL;
	if (place && place->fd >= 0)
		return file_pread(place->fd, out, len, place->at + at);
	if (t->role == TENSOR_LOCAL && f->local >= 0)
		return file_pread(f->local, out, len, local_place(w, t) + at);
	return file_pread(f->base, out, len, w->data_at + t->begin + at);
}

static enum err
read_vector(void *context, uint64_t first, size_t count, float *out)
{
	const struct work_vector *v = context;

	if (v->in_file)
		return file_pread(v->fd, out, count * sizeof(*out), v->at + first * sizeof(*out));
	if (v->memory)
		memcpy(out, v->memory + first, count * sizeof(*out));
	else
		memset(out, 0, count * sizeof(*out));
	return ERR_OK;
}

struct codec_elements
work_vector_values(const struct work_vector *v)
{
	return (struct codec_elements){read_vector, (void *)(uintptr_t)v};
}

enum err
work_unchanged(const struct work *w, struct why *why)
{
	for (size_t i = 0; w->files && i < w->files->left_count; i++) {
		const struct work_left *left = &w->files->left[i];
		struct stat now;
		if (fstat(left->fd, &now) != 0 || now.st_size != left->stat.st_size ||
		    now.st_mtim.tv_sec != left->stat.st_mtim.tv_sec ||
		    now.st_mtim.tv_nsec != left->stat.st_mtim.tv_nsec)
			return err_set(why, ERR_INVALID,
			    "the program changed what it had left, while it was read");
	}
	return ERR_OK;
}

/* --- the delta */

enum err
work_delta_open(struct work_delta *d, const struct work *w, struct why *why)
{
	*d = (struct work_delta){w, -1, why};
	if (w->base)
		return ERR_OK;
	d->base = open(w->path, O_RDONLY | O_CLOEXEC);
	return d->base < 0 ? err_errno(why, "open %s", w->path) : ERR_OK;
}

void
work_delta_close(struct work_delta *d)
{
	if (d->base >= 0)
		close(d->base);
	d->base = -1;
}

/* At most TILE elements of one tensor, from byte `at` of it on. */
static enum err
subtract(const struct work_delta *d, const struct tensor *t, uint64_t at, size_t count, float *out)
{
	const struct work *w = d->work;
	size_t len = count * sizeof(float);
	float before[TILE];
	bool finite = true;

	if (w->base)
		memcpy(before, w->base + t->begin + at, len);
	else if (file_pread(d->base, before, len, w->data_at + t->begin + at))
		return err_set(d->why, ERR_CORRUPT, "%s cannot be read", w->path);
	if (work_read(w, t, at, len, out))
		return err_set(
		    d->why, ERR_IO, "what the trainer left of \"%.180s\" cannot be read", t->name);
	for (size_t i = 0; i < count; i++) {
		out[i] -= before[i];
		finite &= isfinite(out[i]) != 0;
	}
	return finite ? ERR_OK
		      : err_set(d->why, ERR_NUMERIC,
			    "tensor \"%.180s\" has a value that is not finite", t->name);
}

static enum err
read_delta(void *context, uint64_t first, size_t count, float *out)
{
	const struct work_delta *d = context;
	const struct tensor_table *table = &d->work->table;
	struct tensor_piece piece;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && tensor_table_piece(table, &i, first, count, &piece);) {
		float *to = out + (piece.first - first);
		uint64_t at = piece.at - piece.tensor->begin;
		for (size_t done = 0; !e && done < piece.count; done += TILE) {
			size_t n = piece.count - done < TILE ? piece.count - done : TILE;
			e = subtract(d, piece.tensor, at + done * sizeof(float), n, to + done);
		}
	}
	return e;
}

struct codec_elements
work_delta_values(struct work_delta *d)
{
	return (struct codec_elements){read_delta, d};
}

enum err
work_delta_check(const struct work *w, struct why *why)
{
	struct work_delta d;
	float tile[TILE];
	enum err e = work_delta_open(&d, w, why);

	for (uint64_t at = 0; !e && at < w->table.elements; at += TILE) {
		uint64_t left = w->table.elements - at;
		e = read_delta(&d, at, left < TILE ? (size_t)left : TILE, tile);
	}
	work_delta_close(&d);
	return e;
}

/* --- what the job wants */

double
work_rate(const struct work *w)
{
	const struct local_spec *l = &w->task.recipe.local;

	return schedule_rate(&l->schedule, l->optimizer.rate, w->task.round);
}

bool
work_feedback(const struct work *w)
{
	const struct codec *codec = codec_find_name(w->task.recipe.codec);

	return codec && recipe_upload_feedback(&w->task.recipe.upload, codec);
}

bool
work_variates(const struct work *w)
{
	return w->task.recipe.local.variates > 0;
}
