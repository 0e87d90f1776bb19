#ifndef LAYER_NORM_H
#define LAYER_NORM_H
#include "layer.h"

/* The checks of norms, which layer_check calls. */
ERR_MUST_USE enum err layer_norm_groups(struct layer *l, struct why *why);
ERR_MUST_USE enum err layer_norm_batch(struct layer *l, struct why *why);
/* Norms over the last dimension: layernorm, rmsnorm. */
ERR_MUST_USE enum err layer_norm_rows(struct layer *l, struct why *why);

#endif
