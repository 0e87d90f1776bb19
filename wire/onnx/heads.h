#ifndef HEADS_H
#define HEADS_H
#include "nodes.h"

/* Multi-head self-attention by matrix products; what a step may not see is masked, rotary places are constants. Writes the layer on its
 * way. Within wire/onnx. */
void heads_write(struct nodes *g);

#endif
