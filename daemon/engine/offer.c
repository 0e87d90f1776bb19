#include <string.h>

#include "engine_inside.h"

bool
engine_offer_names(const message_name *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

enum wait_reason
engine_offer_lacks(const struct engine_job *j, const struct offer *o, enum task_kind kind)
{
	const struct recipe *r = &j->work->spec.recipe;
	bool found = false;

	for (size_t i = 0; i < o->data_count; i++)
		found |= strcmp(o->data[i].name, r->data.name) == 0 &&
		    o->data[i].examples >= r->data.min_examples;
	if (!found && r->data.name[0])
		return WAIT_NO_DATA;
	if (kind == TASK_EVALUATE &&
	    !engine_offer_names(o->features, o->feature_count, RECIPE_FEATURE_EVALUATE))
		return WAIT_OLD_AGENT;
	if (kind == TASK_EVALUATE
		? !engine_offer_names(o->evaluators, o->evaluator_count, r->trainer)
		: !engine_offer_names(o->trainers, o->trainer_count, r->trainer))
		return WAIT_NO_TRAINER;
	const char *codec = recipe_upload_choose(&r->upload, o->codecs, o->codec_count);
	if (!codec)
		return WAIT_NO_CODEC;
	if (recipe_feature_missing(r, codec_find_name(codec), o->features, o->feature_count))
		return WAIT_OLD_AGENT;
	if (!r->builtin)
		return WAIT_NONE;
	for (size_t l = 0; l < r->net.layer_count; l++) {
		const char *type = recipe_layer_type_name(r->net.layers[l].type);
		if (!engine_offer_names(o->layers, o->layer_count, type))
			return WAIT_OLD_AGENT;
	}
	return WAIT_NONE;
}

bool
engine_offer_unsent(const struct offer *o, const char *task)
{
	for (size_t i = 0; i < o->unsent_count; i++)
		if (strcmp(o->unsent[i], task) == 0)
			return true;
	return false;
}
