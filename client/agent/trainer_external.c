#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cage.h"
#include "examples_file.h"
#include "file.h"
#include "identity.h"
#include "program.h"
#include "trainer.h"
#include "training.h"

#define REPORT_FILE_MAX (64u << 10)
#define TASK_FILE_MAX (2u << 20)
#define COPY_BLOCK (256u << 10)

struct external {
	const struct trainer_in *in;
	const struct settings_trainer *program;
	struct trainer_out *out;
	char dir[PATH_MAX]; /* HOME/work/TASK */
	char examples[PATH_MAX];
};

static enum err
in_dir(const struct external *x, const char *name, char path[PATH_MAX], struct why *why)
{
	return identity_path(path, x->dir, name, why);
}

/* A copy, never a link: a trainer that writes to its base must not spoil the cache. */
static enum err
copy_file(const char *from, const char *to, struct why *why)
{
	char *block = malloc(COPY_BLOCK);
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum err e = in < 0 || out < 0 ? err_errno(why, "copy %s to %s", from, to) : ERR_OK;
	uint64_t at = 0;

	if (!e && !block)
		e = err_set(why, ERR_NOMEM, "no memory");
	while (!e) {
		ssize_t n = read(in, block, COPY_BLOCK);
		if (n == 0)
			break;
		e = n < 0 ? ERR_IO : file_pwrite(out, block, (size_t)n, at);
		if (e)
			err_errno(why, "copy %s to %s", from, to);
		at += n > 0 ? (uint64_t)n : 0;
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	free(block);
	return e;
}

static void
add_text(struct json *o, const char *key, const char *text)
{
	if (*text)
		json_add_string(o, key, text);
}

/* The owner's settings for the data set; the agent's own files have their full path. */
static struct json *
describe_data(const struct external *x)
{
	static const char *const formats[] = {
	    [SETTINGS_GLYPHS] = "glyphs", [SETTINGS_IDX] = "idx", [SETTINGS_CSV] = "csv"};
	const struct settings_data *d = x->in->data;
	struct json *o = json_object();

	json_add_string(o, "name", d->name);
	json_add_string(o, "format", formats[d->format]);
	add_text(o, "images", d->images);
	add_text(o, "labels", d->labels);
	add_text(o, "path", d->path);
	add_text(o, "classes", d->classes);
	if (d->format == SETTINGS_CSV) {
		json_add_string(o, "label", d->label);
		json_add_string(o, "kind", d->regression ? "regression" : "class");
	}
	if (d->format == SETTINGS_GLYPHS) {
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
	json_add_string(o, "split", s->by_label ? "label" : "iid");
	json_add_u64(o, "seed", s->seed);
	return o;
}

static enum err
write_task(const struct external *x, struct why *why)
{
	const struct work *w = x->in->work;
	struct json *doc = NULL;
	struct buf text;
	char path[PATH_MAX];
	uint64_t seed = training_seed(w->task.seed, w->task.round, x->in->device);
	enum err e = json_parse(&doc, w->text, strlen(w->text), why);

	if (e)
		return e;
	buf_init(&text, TASK_FILE_MAX);
	if (x->in->data) {
		json_add(doc, "data", describe_data(x));
		json_add(doc, "shard", describe_shard(&x->in->data->shard));
	}
	json_add_string(doc, "examples", x->examples);
	json_add_u64(doc, "local_seed", seed % JSON_INT_MAX);
	json_add_double(doc, "rate", work_rate(w));
	json_add_u64(doc, "threads", x->in->settings->threads);
	e = json_print(&text, doc, true);
	json_free(doc);
	if (e)
		err_set(why, e, "task.json cannot be written");
	if (!e)
		e = in_dir(x, "task.json", path, why);
	if (!e)
		e = file_write(path, text.data, text.len, 0600, why);
	buf_deinit(&text);
	return e;
}

/* The program runs in that directory, where a relative name would mean something else. */
static enum err
make_absolute(char dir[PATH_MAX], struct why *why)
{
	char *full = realpath(dir, NULL);

	if (!full || strlen(full) >= PATH_MAX) {
		free(full);
		return err_errno(why, "resolve %s", dir);
	}
	strcpy(dir, full);
	free(full);
	return ERR_OK;
}

static enum err
prepare(struct external *x, struct why *why)
{
	char path[PATH_MAX];
	const struct work *w = x->in->work;
	int n = snprintf(x->dir, sizeof(x->dir), "%s/work/%.32s", x->in->home, w->task.task);

	if (n < 0 || (size_t)n >= sizeof(x->dir))
		return err_set(why, ERR_LIMIT, "path too long");
	enum err e = file_remove_dir(x->dir, why);
	if (!e)
		e = cage_prepare(x->in->home, x->program->name, why);
	if (!e)
		e = file_mkdirs(x->dir, 0700, why);
	if (!e)
		e = make_absolute(x->dir, why);
	if (!e)
		e = in_dir(x, "examples.safetensors", x->examples, why);
	if (!e)
		e = examples_file_write(x->examples, x->in->train, x->in->validation, why);
	if (!e)
		e = in_dir(x, "base.safetensors", path, why);
	if (!e)
		e = copy_file(w->path, path, why);
	return e ? e : write_task(x, why);
}

static enum err
run(struct external *x, struct child_result *result, struct why *why)
{
	const struct program program = {.settings = x->in->settings,
	    .trainer = x->program,
	    .home = x->in->home,
	    .directory = x->dir,
	    .data = x->in->data,
	    .child = {.spawner = x->in->spawner,
		.seconds = x->in->seconds,
		.grace_s = x->program->grace_s,
		.stop = x->in->stop,
		.context = x->in->context},
	    .log = x->out->log,
	    .room = sizeof(x->out->log)};

	return program_run(result, &program, why);
}

/* Tensors are matched by name: a framework may have written them in another order. */
static enum err
take_tensors(
    struct work *w, const struct tensor_table *after, int fd, uint64_t data_at, struct why *why)
{
	for (size_t i = 0; i < w->table.count; i++) {
		const struct tensor *want = &w->table.items[i];
		if (!want->in_delta && want->role != TENSOR_LOCAL)
			continue;
		const struct tensor *have = tensor_table_find(after, want->name);
		if (!have)
			return err_set(why, ERR_INVALID,
			    "after.safetensors has no tensor \"%.100s\"", want->name);
		if (have->dtype != want->dtype || have->dims != want->dims ||
		    memcmp(have->shape, want->shape, want->dims * sizeof(want->shape[0])) != 0)
			return err_set(why, ERR_INVALID,
			    "after.safetensors: \"%.100s\" has another type or shape than in the "
			    "base",
			    want->name);
		if (file_pread(fd, w->weights + want->begin, (size_t)(want->end - want->begin),
			data_at + have->begin))
			return err_set(why, ERR_IO, "after.safetensors cannot be read");
	}
	return ERR_OK;
}

static enum err
parse_head(int fd, struct tensor_table *after, uint64_t *data_at, struct why *why)
{
	uint8_t prefix[MODELFILE_PREFIX];
	struct stat st;

	if (fstat(fd, &st) != 0 || file_pread(fd, prefix, sizeof(prefix), 0))
		return err_set(why, ERR_INVALID, "after.safetensors is too short");
	enum err e = modelfile_data_at(prefix, (uint64_t)st.st_size, data_at, why);
	if (e)
		return e;
	char *head = malloc((size_t)*data_at);
	if (!head)
		return err_set(why, ERR_NOMEM, "no memory for a model's head");
	e = file_pread(fd, head, (size_t)*data_at, 0);
	if (!e)
		e = modelfile_parse(after, NULL, head, (size_t)*data_at, (uint64_t)st.st_size, why);
	free(head);
	return e;
}

static enum err
take_after(struct external *x, struct why *why)
{
	char path[PATH_MAX];
	struct tensor_table after = {.items = NULL};
	uint64_t data_at = 0;
	enum err e = in_dir(x, "after.safetensors", path, why);

	if (e)
		return e;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(why, ERR_NOTFOUND, "the trainer left no after.safetensors");
	e = parse_head(fd, &after, &data_at, why);
	if (!e)
		e = take_tensors(x->in->work, &after, fd, data_at, why);
	tensor_table_deinit(&after);
	close(fd);
	return e;
}

static bool
take_figures(struct finish *f, const struct json *doc)
{
	uint64_t optimizer = MANIFEST_EXTERNAL;

	f->accuracy = NAN;
	if (!json_u64(json_get(doc, "examples"), &f->examples) ||
	    !json_u64(json_get(doc, "steps"), &f->steps) ||
	    !json_double(json_get(doc, "loss"), &f->loss))
		return false;
	(void)json_double(json_get(doc, "accuracy"), &f->accuracy);
	(void)json_bool(json_get(doc, "partial"), &f->partial);
	(void)json_u64(json_get(doc, "optimizer"), &optimizer);
	f->normaliser = (double)f->steps;
	(void)json_double(json_get(doc, "normaliser"), &f->normaliser);
	f->optimizer = (uint16_t)optimizer;
	return f->examples >= 1 && f->steps >= 1 && optimizer <= MANIFEST_EXTERNAL;
}

/* Python writes figures that are not finite as NaN and Infinity, which JSON does not have. The key before the first of them. */
static const char *
not_finite(char key[64], const char *text)
{
	const char *word = NULL;

	for (const char *p = text; *p; p++) {
		if (*p == '"') {
			size_t len = strcspn(p + 1, "\"");
			snprintf(key, 64, "%.*s", len < 63 ? (int)len : 63, p + 1);
			p += p[len + 1] ? len + 1 : len;
		} else if (strncmp(p, "NaN", 3) == 0 || strncmp(p, "Infinity", 8) == 0) {
			word = key;
			break;
		}
	}
	return word;
}

static enum err
parse_report(struct external *x, struct json **doc, const char *text, size_t len, struct why *why)
{
	char key[64] = "";
	enum err e = json_parse(doc, text, len, why);

	if (!e || !not_finite(key, text))
		return e;
	x->out->abort = ABORT_NOT_FINITE;
	return err_set(why, ERR_NUMERIC, "report.json: \"%s\" is not finite", key);
}

/* "evaluate" and "metrics" travel on in the signed report. */
static enum err
take_report(struct external *x, struct why *why)
{
	char path[PATH_MAX];
	char *text = NULL;
	size_t len;
	struct json *doc = NULL;
	struct trainer_out *out = x->out;
	enum err e = in_dir(x, "report.json", path, why);

	if (!e)
		e = file_read(path, REPORT_FILE_MAX, &text, &len, why);
	if (!e)
		e = parse_report(x, &doc, text, len, why);
	if (!e && !take_figures(&out->finish, doc))
		e = err_set(why, ERR_INVALID,
		    "report.json wants examples and steps (at least 1) and a finite loss");
	if (!e && (json_get(doc, "evaluate") || json_get(doc, "metrics"))) {
		e = messages_report_decode(&out->report, text, len, why);
		out->has_report = !e;
	}
	json_free(doc);
	free(text);
	return e;
}

static enum err
judge_end(struct external *x, const struct child_result *result, struct why *why)
{
	if (result->exited && result->code == 0)
		return ERR_OK;
	if (result->memory > 0) {
		x->out->abort = ABORT_OUT_OF_MEMORY;
		return err_set(why, ERR_NOMEM,
		    "trainer %s was killed with %llu MiB of memory: its memory_bytes is %llu MiB",
		    x->program->name, (unsigned long long)(result->memory >> 20),
		    (unsigned long long)(x->program->memory_bytes >> 20));
	}
	x->out->abort = result->asked ? ABORT_DEADLINE : ABORT_TRAINER_FAILED;
	if (result->exited)
		return err_set(
		    why, ERR_INVALID, "trainer %s exited with %d", x->program->name, result->code);
	return err_set(why, ERR_INVALID, "trainer %s was ended by signal %d%s", x->program->name,
	    result->code, result->killed ? ": it did not finish when asked" : "");
}

static void
clean_up(struct external *x)
{
	(void)!file_remove_dir(x->dir, NULL);
}

void
trainer_external_clean(const char *home)
{
	char work[PATH_MAX];
	struct external x = {.in = NULL};
	struct dirent *ent;

	if (identity_path(work, home, "work", NULL))
		return;
	DIR *d = opendir(work);
	while (d && (ent = readdir(d)))
		if (strspn(ent->d_name, "0123456789abcdef") == 32 &&
		    identity_path(x.dir, work, ent->d_name, NULL) == ERR_OK)
			clean_up(&x);
	if (d)
		closedir(d);
}

bool
trainer_external_fits(const struct settings *settings, const struct recipe *recipe)
{
	return settings_find_trainer(settings, recipe->trainer) != NULL;
}

enum err
trainer_external_run(const struct trainer_in *in, struct trainer_out *out, struct why *why)
{
	struct external x = {.in = in,
	    .program = settings_find_trainer(in->settings, in->work->task.recipe.trainer),
	    .out = out};
	struct child_result result;

	memset(out, 0, sizeof(*out));
	if (!x.program) {
		out->abort = ABORT_NO_TRAINER;
		return err_set(why, ERR_NOTFOUND, "no such trainer");
	}
	enum err e = prepare(&x, why);
	if (!e)
		e = run(&x, &result, why);
	if (!e)
		e = judge_end(&x, &result, why);
	if (!e)
		e = take_report(&x, why);
	if (!e)
		e = take_after(&x, why);
	if (!e && result.asked)
		out->finish.partial = true;
	if (e && !out->abort)
		out->abort = e == ERR_NOSPACE ? ABORT_DISK_FULL
		    : e == ERR_NOMEM	      ? ABORT_OUT_OF_MEMORY
					      : ABORT_TRAINER_FAILED;
	clean_up(&x);
	return e;
}
