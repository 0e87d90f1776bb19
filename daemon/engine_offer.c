#include <string.h>

#include "engine_job.h"

const char *
engine_offer_lacks(const struct engine_job *j, const struct offer *o)
{
	const struct recipe *r = &j->spec.recipe;
	bool found = false;

	for (size_t i = 0; i < o->data_count; i++)
		found |= strcmp(o->data[i].name, r->data.name) == 0 &&
		    o->data[i].examples >= r->data.min_examples;
	if (!found && r->data.name[0])
		return "no-data";
	found = false;
	for (size_t i = 0; i < o->trainer_count; i++)
		found |= strcmp(o->trainers[i], r->trainer) == 0;
	if (!found)
		return "no-trainer";
	const char *codec = recipe_upload_choose(&r->upload, o->codecs, o->codec_count);
	if (!codec)
		return "no-codec";
	if (recipe_feature_missing(r, codec_find_name(codec), o->features, o->feature_count))
		return "old-agent";
	if (strcmp(r->trainer, "builtin") != 0)
		return NULL;
	for (size_t l = 0; l < r->net.layer_count; l++) {
		const char *type = recipe_layer_type_name(r->net.layers[l].type);
		found = false;
		for (size_t i = 0; i < o->layer_count; i++)
			found |= strcmp(o->layers[i], type) == 0;
		if (!found)
			return "old-agent";
	}
	return NULL;
}

bool
engine_offer_unsent(const struct offer *o, const char *task)
{
	for (size_t i = 0; i < o->unsent_count; i++)
		if (strcmp(o->unsent[i], task) == 0)
			return true;
	return false;
}
