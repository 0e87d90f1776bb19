#include <stdio.h>
#include <string.h>

#include "nodes.h"

/* Numbers of fields and of types in onnx.proto3. */
enum { GRAPH_INITIALIZER = 5 };
enum { TENSOR_PROTO_DIMS = 1, TENSOR_PROTO_TYPE = 2, TENSOR_PROTO_NAME = 8, TENSOR_PROTO_RAW = 9 };
enum { ELEMENT_FLOAT = 1, ELEMENT_INT64 = 7 };

struct initializer {
	const char *name;
	unsigned type;
	const uint64_t *shape;
	unsigned dims;
	const void *data;
	size_t bytes;
};

static void
write_initializer(struct protobuf *p, const struct initializer *t)
{
	size_t at = protobuf_open(p, GRAPH_INITIALIZER);

	for (unsigned i = 0; i < t->dims; i++)
		protobuf_u64(p, TENSOR_PROTO_DIMS, t->shape[i]);
	protobuf_u64(p, TENSOR_PROTO_TYPE, t->type);
	protobuf_string(p, TENSOR_PROTO_NAME, t->name);
	protobuf_bytes(p, TENSOR_PROTO_RAW, t->data, t->bytes);
	protobuf_close(p, at);
}

/* --- constants of a layer */

static struct nodes_value
named(const struct nodes *g, const char *what)
{
	struct nodes_value v = {.rank = RANK_FLAT};

	snprintf(v.name, sizeof(v.name), "/%s/%s", what, nodes_layer(g)->name);
	return v;
}

struct nodes_value
nodes_ints(struct nodes *g, const char *what, const int64_t *v, size_t n)
{
	const uint64_t shape[1] = {n};
	struct nodes_value out = named(g, what);

	write_initializer(&g->constants,
	    &(struct initializer){out.name, ELEMENT_INT64, shape, 1, v, n * sizeof(*v)});
	return out;
}

struct nodes_value
nodes_index(struct nodes *g, const char *what, int64_t v)
{
	struct nodes_value out = named(g, what);

	write_initializer(
	    &g->constants, &(struct initializer){out.name, ELEMENT_INT64, NULL, 0, &v, sizeof(v)});
	return out;
}

struct nodes_value
nodes_floats(
    struct nodes *g, const char *what, const float *v, const uint64_t *shape, unsigned dims)
{
	struct nodes_value out = named(g, what);
	size_t n = 1;

	for (unsigned i = 0; i < dims; i++)
		n *= (size_t)shape[i];
	write_initializer(&g->constants,
	    &(struct initializer){out.name, ELEMENT_FLOAT, shape, dims, v, n * sizeof(*v)});
	return out;
}

struct nodes_value
nodes_float(struct nodes *g, const char *what, float v)
{
	return nodes_floats(g, what, &v, NULL, 0);
}

struct nodes_value
nodes_fill(struct nodes *g, const char *what, float v, uint64_t n)
{
	struct nodes_value out = named(g, what);
	struct protobuf *p = &g->constants;
	size_t at = protobuf_open(p, GRAPH_INITIALIZER);

	protobuf_u64(p, TENSOR_PROTO_DIMS, n);
	protobuf_u64(p, TENSOR_PROTO_TYPE, ELEMENT_FLOAT);
	protobuf_string(p, TENSOR_PROTO_NAME, out.name);
	size_t raw = protobuf_open(p, TENSOR_PROTO_RAW);
	for (uint64_t i = 0; i < n && !p->err; i++)
		protobuf_raw(p, &v, sizeof(v));
	protobuf_close(p, raw);
	protobuf_close(p, at);
	return out;
}

/* --- tensors of the model */

static const struct tensor *
find(struct nodes *g, const char *suffix)
{
	const struct layer_spec *l = nodes_layer(g);
	char name[TENSOR_NAME_MAX];

	if (l->tied > 0 && strcmp(suffix, "weight") == 0)
		l = &g->m->net->layers[l->tied - 1];
	snprintf(name, sizeof(name), "%s.%s", l->name, suffix);
	const struct tensor *t = tensor_table_find(g->m->tensors, name);
	if (!t && !g->err)
		g->err = err_set(g->why, ERR_NOTFOUND, "the model has no tensor \"%s\"", name);
	return t;
}

struct nodes_value
nodes_tensor(struct nodes *g, const char *suffix)
{
	const struct tensor *t = find(g, suffix);
	struct nodes_value v = {.rank = RANK_FLAT};

	if (!t)
		return v;
	g->used[t - g->m->tensors->items] = true;
	snprintf(v.name, sizeof(v.name), "%s", t->name);
	return v;
}

const struct tensor *
nodes_find(struct nodes *g, const char *suffix, uint64_t length)
{
	const struct tensor *t = find(g, suffix);

	if (!t || (t->dims > 0 && t->shape[0] == length))
		return t;
	if (!g->err)
		g->err = err_set(
		    g->why, ERR_INVALID, "tensor \"%s\" has another shape than its layer", t->name);
	return NULL;
}

uint64_t
nodes_length(struct nodes *g, const char *suffix)
{
	const struct tensor *t = find(g, suffix);

	return t && t->dims > 0 ? t->shape[0] : 0;
}

const float *
nodes_elements(const struct nodes *g, const struct tensor *t)
{
	return (const float *)(const void *)((const char *)g->m->weights + t->begin);
}

/* --- behind the nodes */

/* One number for all, or one for each channel or column. */
static void
write_channels(struct nodes *g, const char *name, const float *v)
{
	const struct data_spec *d = g->m->data;
	const uint64_t shape[3] = {d->channels, 1, 1};
	enum nodes_rank rank = nodes_input_shape(g->m->net).rank;
	const struct initializer t = {.name = name,
	    .type = ELEMENT_FLOAT,
	    .shape = shape,
	    .dims = rank == RANK_FLAT ? 1
		: rank == RANK_ROWS   ? 2
				      : 3,
	    .data = v,
	    .bytes = d->channels * sizeof(*v)};

	write_initializer(&g->to, &t);
}

void
nodes_initializers(struct nodes *g)
{
	static const int64_t planes[4] = {0, -1, 1, 1}; /* 0: as it is, -1: what is left */
	static const uint64_t four[1] = {4};
	const struct tensor_table *table = g->m->tensors;

	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *t = &table->items[i];
		if (g->used[i])
			write_initializer(&g->to,
			    &(struct initializer){.name = t->name,
				.type = ELEMENT_FLOAT,
				.shape = t->shape,
				.dims = t->dims,
				.data = (const char *)g->m->weights + t->begin,
				.bytes = (size_t)(t->end - t->begin)});
	}
	if (g->m->data && g->m->data->channels > 0) {
		write_channels(g, NODES_MEAN, g->m->data->mean);
		write_channels(g, NODES_STD, g->m->data->std);
	}
	if (g->reshapes)
		write_initializer(&g->to,
		    &(struct initializer){
			NODES_TO_PLANES, ELEMENT_INT64, four, 1, planes, sizeof(planes)});
	if (g->constants.out->len)
		protobuf_raw(&g->to, g->constants.out->data, g->constants.out->len);
}
