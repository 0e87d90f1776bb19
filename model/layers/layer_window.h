#ifndef LAYER_WINDOW_H
#define LAYER_WINDOW_H
#include "layer.h"

/* Layers that slide a window over planes: the checks that layer_check calls, and their work. */
ERR_MUST_USE enum err layer_window_conv(struct layer *l, struct why *why);
ERR_MUST_USE enum err layer_window_pool(struct layer *l, struct why *why);
/* global_avgpool: one value for each channel, flat. */
ERR_MUST_USE enum err layer_window_global(struct layer *l, struct why *why);
double layer_window_work(const struct layer *l);

#endif
