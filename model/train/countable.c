#include <stdlib.h>

#include "dataset.h"
#include "train.h"

/* The labels of a text are its tokens. Short of memory it says that they count: training will say what is wrong. */
static bool
text_counts(const struct net *net, const struct dataset *data)
{
	size_t labels = net_labels(net);
	int32_t *next = malloc(data->features * sizeof(*next));
	bool counts = !next;

	for (uint32_t i = 0; next && !counts && i < data->count; i++) {
		dataset_next(data, i, next);
		for (size_t k = data->features - labels; !counts && k < data->features; k++)
			counts = net_label_weight(net, next[k]) > 0;
	}
	free(next);
	return counts;
}

bool
train_counts(const struct net *net, const struct dataset *data)
{
	if (net_labels(net) == 0)
		return true;
	if (dataset_form(data) == DATASET_TOKENS)
		return text_counts(net, data);
	if (!data->labels)
		return true;
	for (size_t i = 0; i < data->count; i++)
		if (net_label_weight(net, data->labels[i]) > 0)
			return true;
	return false;
}
