#ifndef ONNX_H
#define ONNX_H
#include "recipe.h"

/*
 * A built-in network with its weights as an ONNX file (onnx.ai, onnx.proto3): IR version 8, the operators of opset 13, which every runtime
 * of since 2021 has. Inference only: dropout passes its input on. Input "input" and output "output" are F32 [batch, example...] with any
 * batch; an embedding reads whole numbers as F32. The first two nodes normalise as the recipe does (data.normalise), so the input is an
 * example as the job's data set has it, bytes as value / 255. Fields are written by ascending number: the bytes are those that ONNX's own
 * library makes of the same graph.
 */
#define ONNX_OPSET 13
#define ONNX_IR 8
#define ONNX_BYTES_MAX 0x7fffffffu /* the limit of a message of Protocol Buffers */

struct onnx_model {
	const char *name; /* of the graph */
	const struct net_spec
	    *net; /* at least one layer; its shapes were checked against each other */
	const struct data_spec *data; /* its normalisation; NULL: none */
	const struct tensor_table *tensors; /* "<layer>.weight" and others, all F32 */
	const void *weights; /* their data section */
	uint32_t output[3]; /* of the last layer: channels, height, width */
};

/* Appends the file to out. ERR_UNSUPPORTED names a layer for which ONNX has nothing here, ERR_NOTFOUND a tensor that is missing,
 * ERR_INVALID one whose shape its layer cannot read; ERR_LIMIT past ONNX_BYTES_MAX or out->max, ERR_NOMEM. */
ERR_MUST_USE enum err onnx_encode(struct buf *out, const struct onnx_model *m, struct why *why);

#endif
