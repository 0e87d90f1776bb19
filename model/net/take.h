#ifndef TAKE_H
#define TAKE_H
#include "net.h"

/*
 * A net's weights from a model file: a table, and the data section that it describes. Tensors stand in any order. One that layers share
 * may have any of their names, and several if all are equal; both tensors of a layer's lora may be missing: they stay as they are.
 */
/* ERR_INVALID names the tensor that is missing, too much or different. ERR_NOMEM. */
ERR_MUST_USE enum err take_fits(
    const struct net *net, const struct tensor_table *have, const void *data, struct why *why);
/* The same, and copies them. */
ERR_MUST_USE enum err take_file(
    struct net *net, const struct tensor_table *have, const void *data, struct why *why);

#endif
