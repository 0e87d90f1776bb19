#ifndef HEADS_H
#define HEADS_H
#include "nodes.h"

/* Writes the current layer (nodes.at), multi-head self-attention, as matrix products; steps that a step may not see are masked, rotary
 * angles are constants. Within wire/onnx. */
void heads_write(struct nodes *g);

#endif
