#include "task_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allowance.h"
#include "apart.h"
#include "dataset.h"
#include "err.h"
#include "examples_file.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "identity.h"
#include "program_state.h"
#include "scaffold.h"
#include "task_file.h"
#include "tensors_file.h"
#include "training.h"
#include "wild.h"

#define BASE "base.safetensors"
#define EXAMPLES "examples.safetensors"
#define KEPT "kept.safetensors"
#define LOCAL "local.safetensors"
#define VARIATES "variates.safetensors"
#define VALIDATION "validation.safetensors"
#define SHARE "share.safetensors"
#define TASKS ".tasks"
#define GIVEN ".given"

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

/* --- what it may only read */

/* Names the agent's file in that directory, and in the task's by a symbolic link, where programs of older versions look for it. */
static enum err
give(const struct task_directory *d, struct task_directory_seen *seen, const char *name,
    char path[PATH_MAX], struct why *why)
{
	enum err e = identity_path(path, d->given, name, why);

	const bool copy = d->apart || (d->copies && seen == &d->base);
	/* Where a link cannot be: models may lie on another file system than the rest. */
	if (!e && *seen->source && (copy || link(seen->source, path) != 0))
		e = file_copy(seen->source, path, 0600, why);
	if (!e && (symlinkat(path, d->fd, name) != 0 || stat(path, &seen->stat) != 0))
		e = err_errno(why, "name %s", path);
	return e;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	    a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	    a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool
has_hash(const char *path, const char *id)
{
	uint8_t hash[HASH_LEN];
	char found[2 * HASH_LEN + 1] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum err e = fd < 0 ? ERR_IO : hash_file(fd, hash);

	if (fd >= 0)
		close(fd);
	if (!e)
		hex_encode(found, hash, sizeof(hash));
	return !e && strcmp(found, id) == 0;
}

/* The time of a file's last change is the kernel's to set: what it says of an untouched file costs no hash. */
static enum err
check(const struct task_directory *d, const struct task_directory_seen *seen, const char *name,
    struct why *why)
{
	char path[PATH_MAX];
	const bool own = d->copies && seen == &d->base;
	struct stat st;

	if (!*seen->source || identity_path(path, d->given, name, NULL) ||
	    (stat(path, &st) == 0 && is_same(&st, &seen->stat)) ||
	    has_hash(own ? path : seen->source, seen->id))
		return ERR_OK;
	if (!own)
		unlink(seen->source);
	return err_set(
	    why, ERR_CORRUPT, "the program changed its %s, which is only to be read", name);
}

static enum err
give_examples(struct task_directory *d, const struct task_directory_options *from,
    char path[PATH_MAX], struct why *why)
{
	char own[EXAMPLES_FILE_ID] = "", spare[PATH_MAX];
	const struct examples_file file = {.train = from->train,
	    .validation = from->validation,
	    .settings = from->settings,
	    .home = from->place.home,
	    .once = from->all > 0,
	    .id = from->examples_id ? from->examples_id : own};
	struct task_directory_seen *seen = &d->examples;
	enum err e = identity_path(spare, d->given, EXAMPLES, why);

	if (!e)
		e = examples_file_find(seen->source, &file, spare, why);
	if (!e && strcmp(seen->source, spare) == 0)
		seen->source[0] = '\0';
	memcpy(seen->id, file.id, sizeof(seen->id));
	return e ? e : give(d, seen, EXAMPLES, path, why);
}

static enum err
give_base(struct task_directory *d, const struct work *w, char path[PATH_MAX], struct why *why)
{
	memcpy(d->base.source, w->path, sizeof(d->base.source));
	memcpy(d->base.id, w->task.model, sizeof(d->base.id));
	return give(d, &d->base, BASE, path, why);
}

/* --- what is of this device alone */

static enum err
read_local(const void *context, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	return work_read(context, t, at, len, out);
}

/* Whole floats are asked for. */
static enum err
read_variates(const void *context, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	return scaffold_shift(context, t->first + at / sizeof(float), len / sizeof(float), out);
}

/* Makes a file of the directory. */
static enum err
put_tensors(
    const struct task_directory *d, const char *name, const struct tensors_file *f, struct why *why)
{
	int fd;
	enum err e = wild_create(&fd, d->fd, name, why);

	if (e)
		return e;
	e = tensors_file_put(f, fd, name, why);
	close(fd);
	return e;
}

/* A file of tensors of the work: those that are local, or those of the delta. */
static enum err
write_tensors(const struct task_directory *d, const char *name, const struct work *w, bool local,
    struct why *why)
{
	struct tensors_file f;
	enum err e = tensors_file_init(&f, w->table.count);

	if (e)
		return err_set(why, e, "no memory for a list of tensors");
	for (size_t i = 0; i < w->table.count; i++) {
		const struct tensor *t = &w->table.items[i];
		const struct tensors_file_bytes bytes = {local ? read_local : read_variates, w, t};
		if (local ? t->role == TENSOR_LOCAL : t->in_delta)
			tensors_file_add_bytes(&f, &bytes);
	}
	e = put_tensors(d, name, &f, why);
	tensors_file_deinit(&f);
	return e;
}

static bool
has_local(const struct work *w)
{
	for (size_t i = 0; i < w->table.count; i++)
		if (w->table.items[i].role == TENSOR_LOCAL)
			return true;
	return false;
}

static size_t
all_examples(const struct task_directory_options *from)
{
	return from->all > 0 ? (size_t)from->all : from->train->count + from->validation->count;
}

static void
add_indices(struct tensors_file *f, const char *name, uint32_t *indices, size_t count)
{
	struct tensor like = {.dtype = TENSOR_U32, .dims = 1, .shape = {count}};

	snprintf(like.name, sizeof(like.name), "%s", name);
	tensors_file_add(f, &like, indices);
}

/* Which of the examples that only the program reads it is to train and to evaluate on, where the job lets it claim no more. */
static enum err
write_share(
    const struct task_directory *d, const struct task_directory_options *from, struct why *why)
{
	const struct task *t = &from->work->task;
	const struct allowance_want want = {.recipe = &t->recipe,
	    .evaluates = t->kind == TASK_EVALUATE,
	    .examples = all_examples(from),
	    .most = t->max_examples,
	    .job_seed = t->seed,
	    .round = t->round,
	    .device = from->device};
	uint32_t *train = NULL, *held = NULL;
	size_t train_count = 0, held_count = 0;
	struct tensors_file f = {.parts = NULL};
	enum err e = allowance_draw(&train, &train_count, &want, true);

	if (!e)
		e = allowance_draw(&held, &held_count, &want, false);
	if (!e)
		e = tensors_file_init(&f, 2);
	if (e) {
		err_set(why, e, "no memory for a share of the examples");
	} else {
		add_indices(&f, "train", train, train_count);
		add_indices(&f, "validation", held, held_count);
		e = put_tensors(d, SHARE, &f, why);
		tensors_file_deinit(&f);
	}
	free(train);
	free(held);
	return e;
}

/* Which of the examples that only the program reads are for evaluation: those that the agent would keep of so many. */
static enum err
write_validation(
    const struct task_directory *d, const struct task_directory_options *from, struct why *why)
{
	const struct work *w = from->work;
	size_t all = all_examples(from), held = 0;
	struct tensors_file f = {.parts = NULL};
	uint32_t *order = NULL;
	enum err e = shard_hold(&order, &held, all, w->task.recipe.data.validation,
	    training_seed(w->task.seed, 0, from->device));

	if (!e)
		e = tensors_file_init(&f, 1);
	if (e) {
		err_set(why, e, "no memory for a validation share");
	} else {
		add_indices(&f, "indices", order, held);
		e = put_tensors(d, VALIDATION, &f, why);
		tensors_file_deinit(&f);
	}
	free(order);
	return e;
}

/* Has it data of its own? */
static bool
reads_itself(const struct task_directory_options *from)
{
	return from->data && from->data->source.format == DATA_EXTERNAL;
}

/* Paths; "" without. */
struct own_files {
	char local[PATH_MAX], variates[PATH_MAX], validation[PATH_MAX], share[PATH_MAX],
	    kept[PATH_MAX];
	/* As in a task_file. */
	char kept_model[65];
	uint64_t kept_round, kept_bytes;
};

/* Indices for a program with data of its own. */
static enum err
write_indices(const struct task_directory *d, const struct task_directory_options *from,
    struct own_files *own, struct why *why)
{
	enum err e = ERR_OK;

	if (!reads_itself(from))
		return ERR_OK;
	if (from->work->task.recipe.data.validation > 0) {
		e = identity_path(own->validation, d->path, VALIDATION, why);
		if (!e)
			e = write_validation(d, from, why);
	}
	if (!e && from->all > 0) {
		e = identity_path(own->share, d->path, SHARE, why);
		if (!e)
			e = write_share(d, from, why);
	}
	return e;
}

/* --- what its program kept */

/* A copy: what counts stays the agent's. One that is damaged is gone, and the job goes on without it. */
static enum err
write_kept(struct task_directory *d, const struct task_directory_options *from,
    struct own_files *own, struct why *why)
{
	struct kept k;
	int fd;
	enum err e = program_state_open(&k, from->work, from->kept_home, &d->lost);

	own->kept_bytes =
	    program_state_room(from->work, from->kept_home, from->settings->kept_bytes);
	if (e == ERR_NOTFOUND)
		d->lost.text[0] = '\0';
	if (e == ERR_NOTFOUND || e == ERR_CORRUPT)
		return ERR_OK;
	if (e) {
		err_set(why, e, "%.200s", d->lost.text);
		d->lost.text[0] = '\0';
		return e;
	}
	own->kept_round = k.file.round;
	hex_encode(own->kept_model, k.file.base, sizeof(k.file.base));
	e = identity_path(own->kept, d->path, KEPT, why);
	if (!e)
		e = wild_create(&fd, d->fd, KEPT, why);
	if (!e) {
		e = program_state_copy(&k, fd, why);
		close(fd);
	}
	kept_close(&k);
	return e;
}

/* --- all of that */

static enum err
write_own(struct task_directory *d, const struct task_directory_options *from,
    struct own_files *own, struct why *why)
{
	const struct work *w = from->work;
	enum err e = ERR_OK;

	if (has_local(w)) {
		e = identity_path(own->local, d->path, LOCAL, why);
		if (!e)
			e = write_tensors(d, LOCAL, w, true, why);
	}
	if (!e && work_variates(w)) {
		e = identity_path(own->variates, d->path, VARIATES, why);
		if (!e)
			e = write_tensors(d, VARIATES, w, false, why);
	}
	if (!e)
		e = write_kept(d, from, own, why);
	return e ? e : write_indices(d, from, own, why);
}

/* --- the directories */

static enum err
fill(struct task_directory *d, const struct task_directory_options *from, struct why *why)
{
	char examples[PATH_MAX] = "", base[PATH_MAX];
	struct own_files own = {.local = ""};
	struct task_file task = {.work = from->work,
	    .data = from->data,
	    .device = from->device,
	    .threads = from->settings->threads,
	    .kernels = from->kernels,
	    .seconds = from->seconds,
	    .examples = examples,
	    .base = base,
	    .local = own.local,
	    .variates = own.variates,
	    .validation = own.validation,
	    .share = own.share,
	    .kept = own.kept,
	    .kept_model = own.kept_model};
	/* Of an external set nothing was read. */
	enum err e = from->train->dims > 0 ? give_examples(d, from, examples, why) : ERR_OK;

	if (!e)
		e = give_base(d, from->work, base, why);
	if (!e)
		e = write_own(d, from, &own, why);
	task.kept_round = own.kept_round;
	task.kept_bytes = own.kept_bytes;
	if (!e)
		e = task_file_write(d->fd, &task, why);
	if (!e)
		e = apart_give_path(d->apart, d->given, false, why);
	return e ? e : apart_give(d->apart, d->fd, true, why);
}

/* What the agent made lies among what the program did. */
static enum err
remove_tree(const struct apart *apart, const char *path, struct why *why)
{
	(void)!apart_empty(apart, path, NULL);
	enum err e = file_remove_dir(path, why);
	if (e && apart && !apart_empty(apart, path, NULL))
		e = file_remove_dir(path, why);
	return e;
}

static enum err
make_empty(const struct apart *apart, char path[PATH_MAX], struct why *why)
{
	enum err e = remove_tree(apart, path, why);

	if (!e)
		e = file_mkdirs(path, 0700, why);
	return e ? e : make_absolute(path, why);
}

/* Its parent is the agent's, or one that a program which stays may change: it is open before anything is put there. */
static enum err
make_open(struct task_directory *d, struct why *why)
{
	char parent[PATH_MAX], task[PATH_MAX];
	char *slash = strrchr(d->path, '/');
	int fd, n;

	snprintf(task, sizeof(task), "%s", slash + 1);
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - d->path), d->path);
	enum err e = file_mkdirs(parent, 0700, why);
	if (!e)
		e = make_absolute(parent, why);
	if (!e)
		e = wild_directory(&fd, parent, why);
	if (e)
		return e;
	if (d->apart)
		(void)!apart_empty(d->apart, d->path, NULL);
	e = wild_remove(fd, task, why);
	if (!e)
		e = wild_make(&d->fd, fd, task, why);
	close(fd);
	n = e ? 0 : snprintf(d->path, sizeof(d->path), "%s/%s", parent, task);
	return n < (int)sizeof(d->path) ? e : err_set(why, ERR_LIMIT, "path too long");
}

/* work/WHOSE and WHAT, in the home or apart from it. */
static enum err
name(char out[PATH_MAX], const struct task_directory_place *place, const char *whose,
    const char *what, struct why *why)
{
	int n = snprintf(
	    out, PATH_MAX, "%s/work/%s%s", apart_base(place->apart, place->home), whose, what);

	return n > 0 && n < PATH_MAX ? ERR_OK : err_set(why, ERR_LIMIT, "path too long");
}

static enum err
name_both(struct task_directory *d, const struct task_directory_options *from, struct why *why)
{
	const struct task_directory_place *place = &from->place;
	const struct settings_trainer *t = place->trainer;
	const char *task = from->work->task.task;
	char below[8 + sizeof(from->work->task.task)];

	if (!t->persistent) {
		enum err e = name(d->path, place, task, "", why);
		return e ? e : name(d->given, place, task, GIVEN, why);
	}
	snprintf(below, sizeof(below), TASKS "/%s", task);
	enum err e = name(d->path, place, t->name, below, why);
	snprintf(below, sizeof(below), GIVEN "/%s", task);
	return e ? e : name(d->given, place, t->name, below, why);
}

enum err
task_directory_make(
    struct task_directory *out, const struct task_directory_options *from, struct why *why)
{
	memset(out, 0, sizeof(*out));
	out->fd = -1;
	out->apart = from->place.apart;
	out->copies = from->place.copies;
	enum err e = name_both(out, from, why);

	if (!e)
		e = make_open(out, why);
	if (!e)
		e = make_empty(out->apart, out->given, why);
	return e ? e : fill(out, from, why);
}

enum err
task_directory_check(const struct task_directory *d, struct why *why)
{
	enum err e = check(d, &d->base, BASE, why);
	enum err other = check(d, &d->examples, EXAMPLES, why);

	return e ? e : other;
}

enum err
task_directory_show(const struct task_directory *d, struct why *why)
{
	return apart_show(d->apart, d->path, why);
}

void
task_directory_remove(struct task_directory *d)
{
	if (*d->path && d->fd >= 0)
		close(d->fd);
	if (*d->path)
		(void)!remove_tree(d->apart, d->path, NULL);
	if (*d->given)
		(void)!file_remove_dir(d->given, NULL);
}

enum err
task_directory_stay(
    struct task_directory_stay *out, const struct task_directory_place *place, struct why *why)
{
	enum err e = name(out->tasks, place, place->trainer->name, TASKS, why);

	if (!e)
		e = name(out->given, place, place->trainer->name, GIVEN, why);
	if (!e)
		e = make_empty(place->apart, out->tasks, why);
	if (!e)
		e = make_empty(place->apart, out->given, why);
	if (!e)
		e = apart_give_path(place->apart, out->tasks, true, why);
	return e ? e : apart_give_path(place->apart, out->given, false, why);
}

void
task_directory_leave(const struct task_directory_place *place)
{
	static const char *const both[] = {TASKS, GIVEN};
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++)
		if (name(path, place, place->trainer->name, both[i], NULL) == ERR_OK)
			(void)!remove_tree(place->apart, path, NULL);
}

/* There the directory itself stays. */
static void
clean_apart(const struct apart *apart, const char *work)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *d = opendir(work);

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.' && !identity_path(path, work, entry->d_name, NULL))
			(void)!remove_tree(apart, path, NULL);
	if (d)
		closedir(d);
}

void
task_directory_clean(const char *home, const struct apart *apart)
{
	char work[PATH_MAX];

	if (identity_path(work, home, "work", NULL) == ERR_OK)
		(void)!file_remove_dir(work, NULL);
	if (apart && identity_path(work, apart->place, "work", NULL) == ERR_OK)
		clean_apart(apart, work);
}
