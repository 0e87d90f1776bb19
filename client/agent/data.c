#include "data.h"

#include <stdlib.h>
#include <string.h>

#include "glyphs.h"
#include "source.h"

static enum err
load_files(struct dataset *out, const struct settings_data *d, struct why *why)
{
	const struct source from = {
	    .images = d->format == SETTINGS_IDX ? d->images : NULL,
	    .labels = d->labels,
	    .path = d->path,
	    .csv = {.label = d->label[0] ? d->label : NULL, .regression = d->regression},
	    .shape = d->shape,
	    .shard = &d->shard,
	};

	return source_load(out, &from, why);
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

enum err
data_load(struct dataset *out, const struct settings_data *from, struct why *why)
{
	enum err e = from->format == SETTINGS_GLYPHS ? load_glyphs(out, from, why)
						     : load_files(out, from, why);

	if (e)
		return e;
	size_t named = data_class_names(from->classes, 0, NULL);
	if (named > 0 && out->labels && named < out->classes) {
		e = err_set(why, ERR_INVALID, "label %zu is beyond the %zu class names",
		    out->classes - 1, named);
		dataset_deinit(out);
	}
	return e;
}

enum err
data_split(struct dataset *train, struct dataset *validation, const struct dataset *from,
    double share, uint64_t seed)
{
	uint32_t *order = NULL;
	size_t n = from->count, held = 0;

	memset(train, 0, sizeof(*train));
	memset(validation, 0, sizeof(*validation));
	enum err e = shard_hold(&order, &held, n, share, seed);
	if (!e && held)
		e = dataset_subset(validation, from, order, held);
	if (!e)
		e = dataset_subset(train, from, order + held, n - held);
	if (e)
		dataset_deinit(validation);
	free(order);
	return e;
}

size_t
data_class_names(const char *list, size_t i, char out[RECIPE_NAME_MAX])
{
	size_t n = 0;

	for (const char *p = list + strspn(list, ", \t"); *p; p += strspn(p, ", \t")) {
		size_t len = strcspn(p, ",");
		const char *next = p + len;
		while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
			len--;
		if (out && n == i) {
			len = len < RECIPE_NAME_MAX ? len : RECIPE_NAME_MAX - 1;
			memcpy(out, p, len);
			out[len] = '\0';
		}
		n++;
		p = next;
	}
	return n;
}

/* Names given on both sides must agree in number and order: a permuted label would train nonsense. */
static enum err
classes_fit(const struct settings_data *from, const struct data_spec *spec, struct why *why)
{
	size_t n = data_class_names(from->classes, 0, NULL);
	char own[RECIPE_NAME_MAX];

	if (n == 0 || spec->class_count == 0)
		return ERR_OK;
	if (n != spec->class_count)
		return err_set(why, ERR_INVALID, "data %s has %zu classes, the job has %zu",
		    from->name, n, spec->class_count);
	for (size_t i = 0; i < n; i++) {
		const char *theirs = json_string(json_at(spec->classes, i));
		data_class_names(from->classes, i, own);
		if (theirs && strcmp(theirs, own) != 0)
			return err_set(why, ERR_INVALID,
			    "data %s: class %zu is %s here and %s in the job", from->name, i, own,
			    theirs);
	}
	return ERR_OK;
}

enum err
data_fits(const struct dataset *set, const struct settings_data *from, const struct recipe *recipe,
    struct why *why)
{
	const struct data_spec *spec = &recipe->data;
	char here[DATASET_SHAPE_TEXT], there[DATASET_SHAPE_TEXT];

	if (!dataset_shape_fits(set, spec))
		return err_set(why, ERR_INVALID,
		    "data %s has examples of shape %s, the job wants %s", from->name,
		    dataset_shape_text(here, set->shape, set->dims),
		    dataset_shape_text(there, spec->shape, spec->dims));
	if (spec->class_count > 0 && !set->labels)
		return err_set(why, ERR_INVALID, "data %s has no class labels", from->name);
	if (spec->class_count > 0 && set->classes > spec->class_count)
		return err_set(why, ERR_INVALID, "data %s has label %zu, the job has %zu classes",
		    from->name, set->classes - 1, spec->class_count);
	return classes_fit(from, spec, why);
}
