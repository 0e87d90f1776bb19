#include "data.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "child.h"
#include "err.h"
#include "glyphs.h"
#include "json.h"
#include "messages.h"
#include "packed.h"
#include "shown.h"
#include "source.h"
#include "task_kind.h"

#define WRITE_PATHS_MAX 64

/* --- where trainers may write */

/* Does it stand there, or lead there on its way? */
static bool
passes(const char *file, const char *place)
{
	const size_t len = strlen(place);
	char path[PATH_MAX], full[PATH_MAX];
	bool found = false;

	snprintf(path, sizeof(path), "%s", file);
	for (char *end = path + strlen(path); !found && end; end = strrchr(path, '/')) {
		*end = '\0';
		if (realpath(*path ? path : *file == '/' ? "/" : ".", full))
			found = strncmp(full, place, len) == 0 &&
			    (len == 1 || !full[len] || full[len] == '/');
	}
	return found;
}

static enum err
guard(const char *file, const struct settings_trainer *t, struct why *why)
{
	char words[SETTINGS_WORDS_MAX], place[PATH_MAX];
	const char *paths[WRITE_PATHS_MAX];

	snprintf(words, sizeof(words), "%s", t->write);
	if (t->free || !*words || child_split(words, paths, WRITE_PATHS_MAX))
		return ERR_OK;
	for (size_t i = 0; paths[i]; i++)
		if (realpath(paths[i], place) && passes(file, place))
			return err_set(why, ERR_DENIED,
			    "%.120s: [trainer %s] may write there (write = %.100s) and so choose "
			    "what this agent reads: move it, or name another place",
			    file, t->name, paths[i]);
	return ERR_OK;
}

enum err
data_guard(const struct settings *settings, const struct settings_data *from, struct why *why)
{
	const char *files[DATA_SOURCE_FILES];
	const size_t n =
	    from->source.format == DATA_EXTERNAL ? 0 : data_source_files(&from->source, files);
	enum err e = ERR_OK;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; !e && k < settings->trainer_count; k++)
			e = guard(files[i], &settings->trainers[k], why);
	return e;
}

/* --- loading */

/* Only a trainer reads it: nothing is known but the count. */
static void
count_external(struct dataset *out, const struct settings_data *d)
{
	*out = (struct dataset){.count = (size_t)d->source.examples};
}

static enum err
load_glyphs(struct dataset *out, const struct settings_data *d, struct why *why)
{
	struct dataset all;
	uint32_t *keep = NULL;
	size_t kept = 0;
	enum err e = glyphs_make(&all, d->seed, d->hand, (uint32_t)d->glyph_count, d->skew);

	if (e)
		return err_set(why, e, "glyphs: %s", err_name(e));
	if (d->shard.count <= 1) {
		*out = all;
		return ERR_OK;
	}
	e = shard_pick(&keep, &kept, &d->shard, all.labels, all.count, why);
	if (!e)
		e = dataset_subset(out, &all, keep, kept);
	free(keep);
	dataset_deinit(&all);
	return e;
}

/* One that no message may hold would cost the device its whole offer. */
static enum err
names_are_shown(const struct dataset *set, const struct settings_data *from, struct why *why)
{
	char name[RECIPE_NAME_MAX] = "";
	size_t n = data_source_names(from->source.classes, 0, name, RECIPE_NAME_MAX);

	for (size_t i = 0; i < n; i++) {
		data_source_names(from->source.classes, i, name, RECIPE_NAME_MAX);
		if (!*name || !shown_is(name))
			return err_set(why, ERR_INVALID,
			    "the name of class %zu has characters that cannot be shown", i);
	}
	return n == 0 && set->names
	    ? packed_names_check(set->names, strlen(set->names), (uint32_t)set->classes, why)
	    : ERR_OK;
}

enum err
data_load(struct dataset *out, const struct settings_data *from, struct why *why)
{
	enum err e = ERR_OK;

	if (from->source.format == DATA_GLYPHS)
		e = load_glyphs(out, from, why);
	else if (from->source.format == DATA_EXTERNAL)
		count_external(out, from);
	else
		e = source_load(out, &from->source, &from->shard, why);
	if (e)
		return e;
	size_t named = data_source_names(from->source.classes, 0, NULL, RECIPE_NAME_MAX);
	if (named > 0 && out->labels && named < out->classes)
		e = err_set(why, ERR_INVALID, "label %zu is beyond the %zu class names",
		    out->classes - 1, named);
	if (!e)
		e = names_are_shown(out, from, why);
	if (e)
		dataset_deinit(out);
	return e;
}

/* Name i of those that the file has, in a line each; returns how many there are. */
static size_t
file_names(const char *names, size_t i, char out[RECIPE_NAME_MAX])
{
	size_t n = 0;

	for (const char *end; *names && (end = strchr(names, '\n')); names = end + 1, n++)
		if (n == i)
			snprintf(out, RECIPE_NAME_MAX, "%.*s", (int)(end - names), names);
	return n;
}

size_t
data_names(const struct dataset *set, const struct settings_data *from, size_t i,
    char out[RECIPE_NAME_MAX])
{
	size_t n = data_source_names(from->source.classes, i, out, RECIPE_NAME_MAX);

	return n > 0 || !set->names ? n : file_names(set->names, i, out);
}

#define LIST_MAX 100 /* bytes of names in a message */

/* The owner's names as a job's document has them, as many as there is room for. */
static void
list_names(char out[LIST_MAX + 8], const struct dataset *set, const struct settings_data *from)
{
	char own[RECIPE_NAME_MAX];
	size_t n = data_names(set, from, 0, own), len = 0;
	struct buf word;

	buf_init(&word, LIST_MAX);
	out[len++] = '[';
	for (size_t i = 0; i < n; i++) {
		data_names(set, from, i, own);
		struct json *name = json_new_string(own);
		buf_reset(&word);
		enum err e = json_print(&word, name, false);
		json_free(name);
		if (e || len + word.len + 2 > LIST_MAX) {
			strcpy(out + len, "...");
			len += 3;
			break;
		}
		len += (size_t)snprintf(
		    out + len, LIST_MAX + 8 - len, "%s%s", buf_str(&word), i + 1 < n ? ", " : "");
	}
	strcpy(out + len, "]");
	buf_deinit(&word);
}

/* "0", "1", ... are what a job has that gives only their number. */
static bool
is_numbered(const char *name, size_t i)
{
	char number[24];

	snprintf(number, sizeof(number), "%zu", i);
	return strcmp(name, number) == 0;
}

/* What to write so that both have the same. */
static enum err
fail_classes(const struct dataset *set, const struct settings_data *from,
    const struct data_spec *spec, size_t i, struct why *why)
{
	const char *theirs = json_string(json_at(spec->classes, i));
	char own[RECIPE_NAME_MAX], list[LIST_MAX + 8];

	data_names(set, from, i, own);
	list_names(list, set, from);
	if (is_numbered(theirs, i))
		return err_set(why, ERR_INVALID,
		    "data %.40s has names for its classes, the job has a number: the job's data "
		    "want \"classes\": %s",
		    from->name, list);
	if (is_numbered(own, i))
		return err_set(why, ERR_INVALID,
		    "data %.40s has numbers for its classes, the job has names: the job's data "
		    "want "
		    "\"classes\": %zu, or [data %.40s] classes = the names",
		    from->name, spec->class_count, from->name);
	return err_set(why, ERR_INVALID,
	    "data %.40s: class %zu is %.40s here and %.40s in the job; its order here: %s",
	    from->name, i, own, theirs, list);
}

/* Names given on both sides must agree in number and order: a permuted label would train nonsense. */
static enum err
classes_fit(const struct dataset *set, const struct settings_data *from,
    const struct data_spec *spec, struct why *why)
{
	char own[RECIPE_NAME_MAX];
	size_t n = data_names(set, from, 0, own);

	if (n == 0 || spec->class_count == 0)
		return ERR_OK;
	if (n != spec->class_count)
		return err_set(why, ERR_INVALID, "data %s has %zu classes, the job has %zu",
		    from->name, n, spec->class_count);
	for (size_t i = 0; i < n; i++) {
		const char *theirs = json_string(json_at(spec->classes, i));
		data_names(set, from, i, own);
		if (theirs && strcmp(theirs, own) != 0)
			return fail_classes(set, from, spec, i, why);
	}
	return ERR_OK;
}

/* What only its trainer reads is its trainer's to judge. */
static enum err
external_fits(const struct settings_data *from, const struct recipe *recipe, struct why *why)
{
	if (recipe->builtin)
		return err_set(why, ERR_INVALID,
		    "data %s is external: the built-in trainer does not read it", from->name);
	return ERR_OK;
}

/* One more than the largest label that counts. */
static size_t
classes_in(const struct dataset *set, const struct recipe *recipe)
{
	const struct net_spec *net = &recipe->net;
	size_t n = 0;

	if (!set->labels || !net->ignores || (size_t)net->ignored + 1 != set->classes)
		return set->classes;
	for (size_t i = 0; i < set->count; i++)
		if (set->labels[i] != net->ignored && (size_t)set->labels[i] >= n)
			n = (size_t)set->labels[i] + 1;
	return n;
}

enum err
data_fits(const struct dataset *set, const struct settings_data *from, const struct recipe *recipe,
    struct why *why)
{
	const struct data_spec *spec = &recipe->data;
	bool text = set->dims > 0 && dataset_form(set) == DATASET_TOKENS;
	char here[DATASET_SHAPE_TEXT], there[DATASET_SHAPE_TEXT];

	if (from->source.format == DATA_EXTERNAL)
		return external_fits(from, recipe, why);
	if (spec->window > 0 && (!text || spec->window >= set->rows->items))
		return err_set(why, ERR_INVALID,
		    "data %s is no text of more than the %u tokens of the job's window", from->name,
		    spec->window);
	if (spec->window == 0 && !dataset_shape_fits(set, spec))
		return err_set(why, ERR_INVALID,
		    "data %s has examples of shape %s, the job wants %s", from->name,
		    dataset_shape_text(here, set->shape, set->dims),
		    dataset_shape_text(there, spec->shape, spec->dims));
	if (spec->class_count > 0 && !set->labels && !text)
		return err_set(why, ERR_INVALID, "data %s has no class labels%s", from->name,
		    set->targets ? " (kind = regression)" : "");
	size_t classes = text ? 0 : classes_in(set, recipe);
	if (spec->class_count > 0 && classes > spec->class_count)
		return err_set(why, ERR_INVALID, "data %s has label %zu, the job has %zu classes",
		    from->name, classes - 1, spec->class_count);
	return text ? ERR_OK : classes_fit(set, from, spec, why);
}
