#ifndef PLAIN_H
#define PLAIN_H
#include "nodes.h"

/* Each writes the current layer (nodes.at) as one node or two. Within wire/onnx. */
void plain_linear(struct nodes *g);
void plain_conv(struct nodes *g); /* conv2d and conv1d */
void plain_pool(struct nodes *g); /* maxpool2d and avgpool2d */
void plain_global(struct nodes *g);
void plain_flatten(struct nodes *g);
void plain_add(struct nodes *g);
void plain_concat(struct nodes *g);
void plain_multiply(struct nodes *g);
void plain_embedding(struct nodes *g);
void plain_positions(struct nodes *g);
void plain_reverse(struct nodes *g);
void plain_pool_steps(struct nodes *g);

#endif
