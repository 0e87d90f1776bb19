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
/* What net_init and take_file come to, for who has no memory for it: all of it in the order of net_tensors, of a net that may be one of
 * figures only. Of how, first and end are not looked at. Ends with what its take returns, if that is no ERR_OK. */
ERR_MUST_USE enum err take_pieces(const struct net *net, const struct tensor_table *have,
    const void *data, const struct net_drawing *how, struct why *why);

#endif
