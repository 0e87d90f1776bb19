#ifndef NORMS_H
#define NORMS_H
#include "nodes.h"

/* Each writes the current layer (nodes.at), one that normalises. Opset 13 has no operator for groups and rows. Within wire/onnx. */
void norms_batch(struct nodes *g);
void norms_groups(struct nodes *g);
void norms_layer(struct nodes *g);
void norms_rms(struct nodes *g);

#endif
