#ifndef POINTWISE_H
#define POINTWISE_H
#include "nodes.h"

/* Each writes the current layer (nodes.at), one that works element by element. Within wire/onnx. */
void pointwise_relu(struct nodes *g);
void pointwise_relu6(struct nodes *g);
void pointwise_sigmoid(struct nodes *g);
void pointwise_tanh(struct nodes *g);
void pointwise_gelu(struct nodes *g);
void pointwise_silu(struct nodes *g);
void pointwise_hardswish(struct nodes *g);
void pointwise_leaky_relu(struct nodes *g);
void pointwise_elu(struct nodes *g);
void pointwise_scale(struct nodes *g);
void pointwise_dropout(struct nodes *g); /* passes its input on */

#endif
