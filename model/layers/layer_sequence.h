#ifndef LAYER_SEQUENCE_H
#define LAYER_SEQUENCE_H
#include "layer.h"

/* Layers of sequences: the checks that layer_check calls, and their work. */
ERR_MUST_USE enum err layer_sequence_embedding(struct layer *l, struct why *why);
ERR_MUST_USE enum err layer_sequence_positions(struct layer *l, struct why *why);
ERR_MUST_USE enum err layer_sequence_recurrent(struct layer *l, struct why *why);
ERR_MUST_USE enum err layer_sequence_attention(struct layer *l, struct why *why);
ERR_MUST_USE enum err layer_sequence_reverse(struct layer *l, struct why *why);
ERR_MUST_USE enum err layer_sequence_pool(struct layer *l, struct why *why);
double layer_sequence_work(const struct layer *l);

/* The number of gates of an lstm or gru, which lie side by side in each matrix. */
static inline size_t
layer_sequence_gates(enum layer_type type)
{
	return type == LAYER_LSTM ? 4 : 3;
}

#endif
