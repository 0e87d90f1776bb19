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

/* Weights, two vectors while the delta is made, and its payload; with control variates four vectors and a payload more; with error
 * feedback the residual. */
#define MEMORY_COPIES 4
#define MEMORY_VARIATES 5
#define MEMORY_FEEDBACK 1
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

/* Vectors as large as the model. */
static uint64_t
copies_of(const struct work *w)
{
	uint64_t copies = MEMORY_COPIES;

	if (work_variates(w))
		copies += MEMORY_VARIATES;
	if (work_feedback(w))
		copies += MEMORY_FEEDBACK;
	return copies;
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
	if (!e && memory_bytes && w->table.bytes > memory_bytes / copies_of(w))
		e = err_set(why, ERR_LIMIT, "a model of %llu bytes needs more than memory_bytes",
		    (unsigned long long)w->table.bytes);
	if (!e)
		e = read_weights(w, fd, &w->weights, why);
	close(fd);
	if (e)
		return e;
	w->params = recipe_text_params(w->task.recipe.text);
	w->recipe = strdup(recipe_text_all(w->task.recipe.text));
	return w->params && w->recipe ? ERR_OK : ERR_NOMEM;
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
	free(w->server_variate);
	free(w->own_variate);
	free(w->shift);
	memset(w, 0, sizeof(*w));
}

double
work_left(const struct work *w)
{
	return w->task.deadline_s - (backoff_now() - w->came_at);
}

double
work_budget(const struct work *w, double own)
{
	double left = work_left(w) * DEADLINE_SHARE;

	if (left <= 0)
		left = 0.001;
	return own > 0 && own < left ? own : left;
}

/* The tensor of the first value of a delta vector that is not finite; NULL: all are. */
static const struct tensor *
first_not_finite(const struct work *w, const float *vector)
{
	size_t n = (size_t)w->table.elements, at = 0;

	while (at < n && isfinite(vector[at]))
		at++;
	for (size_t i = 0; at < n && i < w->table.count; i++) {
		const struct tensor *t = &w->table.items[i];
		if (t->in_delta && at - t->first < t->elements)
			return t;
	}
	return NULL;
}

enum err
work_delta(const struct work *w, float **out, struct why *why)
{
	size_t n = (size_t)w->table.elements;
	uint8_t *base = NULL;
	float *before = calloc(n, sizeof(*before)), *after = calloc(n, sizeof(*after));
	int fd = open(w->path, O_RDONLY | O_CLOEXEC);
	enum err e = ERR_OK;

	if (fd < 0)
		e = err_errno(why, "open %s", w->path);
	else if (!before || !after)
		e = err_set(why, ERR_NOMEM, "no memory for the delta");
	if (!e)
		e = read_weights(w, fd, &base, why);
	if (!e) {
		modelfile_gather(before, &w->table, base);
		modelfile_gather(after, &w->table, w->weights);
		for (size_t i = 0; i < n; i++)
			after[i] -= before[i];
		const struct tensor *wrong = first_not_finite(w, after);
		if (wrong)
			e = err_set(why, ERR_NUMERIC,
			    "tensor \"%.180s\" has a value that is not finite", wrong->name);
	}
	if (!e) {
		*out = after;
		after = NULL;
	}
	if (fd >= 0)
		close(fd);
	free(base);
	free(before);
	free(after);
	return e;
}

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
