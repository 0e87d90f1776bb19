#ifndef GATES_H
#define GATES_H
#include "nodes.h"

/* lstm and gru: a node for each of the stacked layers, steps first. Weights are rearranged: PyTorch has the gates i, f, g, o and r, z, n,
 * ONNX i, o, f, c and z, r, h. Writes the layer on its way. Within wire/onnx. */
void gates_write(struct nodes *g);

#endif
