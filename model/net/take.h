#ifndef TAKE_H
#define TAKE_H
#include "net.h"

/*
 * A net's weights from a model file: a table, and the data section that it describes. Tensors stand in any order. A tensor that layers
 * share may have any of their names, and several if all are equal. The two LoRA tensors of a layer may be missing: they then stay
 * unchanged.
 */
/* Checks that a file's tensors fit the net. ERR_INVALID names the tensor that is missing, too much or different. ERR_NOMEM. */
ERR_MUST_USE enum err take_fits(
    const struct net *net, const struct tensor_table *have, const void *data, struct why *why);
/* take_fits, then copies the tensors into the net. */
ERR_MUST_USE enum err take_file(
    struct net *net, const struct tensor_table *have, const void *data, struct why *why);
/* The parameters after net_init and take_file, in pieces, for a caller without memory for all; the net may be a planned one. Calls
 * how->take() for all parameters in the order of net_tensors; how->first and how->end are not used. Ends with take's first error. */
ERR_MUST_USE enum err take_pieces(const struct net *net, const struct tensor_table *have,
    const void *data, const struct net_drawing *how, struct why *why);

#endif
