#include "cuts.h"

bool
cuts_crossed(const struct net_spec *spec, size_t cut, struct cuts_crossing *first)
{
	for (size_t i = cut; i < spec->layer_count; i++)
		for (size_t k = 0; k < spec->layers[i].input_count && k < RECIPE_INPUTS_MAX; k++) {
			int from = spec->layers[i].inputs[k];
			if (from < LAYER_INPUT || from >= (int)cut - 1)
				continue;
			*first = (struct cuts_crossing){i, from};
			return true;
		}
	return false;
}

bool
cuts_tied(const struct net_spec *spec, size_t cut)
{
	for (size_t i = cut; i < spec->layer_count; i++)
		if (spec->layers[i].tied > 0 && spec->layers[i].tied <= cut)
			return true;
	return false;
}
