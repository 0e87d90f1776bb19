#ifndef GATES_H
#define GATES_H
#include "nodes.h"

/* Writes the current layer (nodes.at), an lstm or gru: a node for each of the stacked layers, steps as the first dimension. Weights are
 * rearranged: PyTorch has the gates i, f, g, o and r, z, n, ONNX i, o, f, c and z, r, h. Within wire/onnx. */
void gates_write(struct nodes *g);

#endif
