#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "augment.h"
#include "dataset.h"
#include "draw.h"
#include "num.h"

void
batch_deinit(struct batch *b)
{
	free(b->x);
	free(b->labels);
	free(b->next);
	free(b->targets);
	free(b->scratch);
}

enum err
batch_init(struct batch *b, const struct net *net, const struct dataset *data, uint32_t size)
{
	size_t x, targets, labels, width = net_labels(net);

	*b = (struct batch){
	    .size = size, .label_width = width, .takes_targets = net_targets(net) > 0};
	if (!num_mul(size, data->features * sizeof(float), &x) ||
	    !num_mul(size, width * sizeof(*b->labels), &labels) ||
	    !num_mul(size, data->target_width * sizeof(float), &targets))
		return ERR_NOMEM;
	b->x = malloc(x);
	b->labels = malloc(labels > 0 ? labels : 1);
	if (width > 0 && !data->labels && !(b->next = malloc(data->features * sizeof(*b->next))))
		return ERR_NOMEM;
	b->targets = malloc(targets > 0 ? targets : 1);
	return b->x && b->labels && b->targets ? ERR_OK : ERR_NOMEM;
}

/* One example, changed at random if there is a place for that. */
static void
fill_example(const struct batch *b, const struct dataset *data, const struct data_spec *spec,
    const struct draw *draw, uint32_t at, uint32_t i)
{
	float *x = b->x + i * data->features;

	dataset_fill(data, b->scratch ? NULL : spec, at, x);
	if (!b->scratch)
		return;
	augment_example(&spec->augment, spec->shape, draw, i, x, b->scratch);
	dataset_normalise(spec, data->features, x);
}

void
batch_labels(const struct batch *b, const struct dataset *data, uint32_t at, uint32_t i)
{
	if (data->labels && b->label_width > 0)
		b->labels[i] = data->labels[at];
	if (!b->next)
		return;
	dataset_next(data, at, b->next);
	memcpy(b->labels + i * b->label_width, b->next + data->features - b->label_width,
	    b->label_width * sizeof(*b->labels));
}

void
batch_fill(const struct batch *b, const struct dataset *data, const struct data_spec *spec,
    const struct draw *draw, const uint32_t *order, size_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = order ? order[first + i] : (uint32_t)(first + i);
		fill_example(b, data, spec, draw, at, i);
		batch_labels(b, data, at, i);
		for (size_t k = 0; b->takes_targets && k < data->target_width; k++)
			b->targets[i * data->target_width + k] =
			    data->targets[at * data->target_width + k];
	}
}

struct net_batch
batch_of(const struct batch *b, uint32_t n, const struct draw *draw)
{
	return (struct net_batch){.x = b->x,
	    .labels = b->label_width > 0 ? b->labels : NULL,
	    .targets = b->takes_targets ? b->targets : NULL,
	    .n = n,
	    .draw = draw};
}
