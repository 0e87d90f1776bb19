#include "layer.h"

#include <float.h>
#include <stdlib.h>

#include "layer_norm.h"
#include "layer_sequence.h"
#include "layer_window.h"
#include "num.h"

enum err
layer_shape_set(
    struct layer_shape *s, uint64_t c, uint64_t h, uint64_t w, const char *name, struct why *why)
{
	size_t size;

	if (c == 0 || h == 0 || w == 0)
		return err_set(why, ERR_INVALID, "layer \"%s\": its output is empty", name);
	if (c > UINT32_MAX || h > UINT32_MAX || w > UINT32_MAX || !num_mul(c, h, &size) ||
	    !num_mul(size, w, &size) || size > SIZE_MAX / sizeof(float))
		return err_set(why, ERR_LIMIT, "layer \"%s\": its output is too large", name);
	*s = (struct layer_shape){
	    (uint32_t)c, (uint32_t)h, (uint32_t)w, h == 1 && w == 1 ? 1 : 3, size};
	return ERR_OK;
}

enum err
layer_shape_rows(
    struct layer_shape *s, uint64_t rows, uint64_t width, const char *name, struct why *why)
{
	enum err e = layer_shape_set(s, rows, 1, width, name, why);

	if (!e)
		s->dims = 2;
	return e;
}

bool
layer_shape_same(const struct layer_shape *a, const struct layer_shape *b)
{
	return a->c == b->c && a->h == b->h && a->w == b->w && (a->dims == 2) == (b->dims == 2);
}

enum err
layer_param_add(struct layer *l, const struct layer_param *p, struct why *why)
{
	struct layer_param *to = &l->param[l->param_count];

	if (l->param_count == LAYER_PARAMS_MAX)
		return err_set(why, ERR_LIMIT, "layer \"%s\": too many tensors", l->spec.name);
	*to = *p;
	to->count = 1;
	for (unsigned i = 0; i < p->dims; i++)
		if (p->shape[i] > SIZE_MAX ||
		    !num_mul(to->count, (size_t)p->shape[i], &to->count) ||
		    to->count > SIZE_MAX / sizeof(float))
			return err_set(
			    why, ERR_LIMIT, "layer \"%s\": too many weights", l->spec.name);
	l->param_count++;
	return ERR_OK;
}

/* Small matrices whose product is added to the weight; the layer's output must not be narrower than they are. */
static enum err
check_lora(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	size_t width = layer_width(&l->in[0]);

	if (s->rank == 0)
		return ERR_OK;
	if (s->rank > width || s->rank > s->out || !(s->alpha > 0 && s->alpha <= FLT_MAX))
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": lora of rank %u, and its weight is [%u, %zu]; alpha is above 0",
		    s->name, s->rank, s->out, width);
	const struct layer_param narrow = {.suffix = "lora_A.weight",
				     .shape = {s->rank, width},
				     .dims = 2,
				     .fan_in = width,
				     .fan_out = s->rank,
				     .start = START_TORCH},
				 wide = {.suffix = "lora_B.weight",
				     .shape = {s->out, s->rank},
				     .dims = 2,
				     .start = START_ZERO};
	enum err e = layer_param_add(l, &narrow, why);
	return e ? e : layer_param_add(l, &wide, why);
}

static enum err
check_linear(struct layer *l, struct why *why)
{
	const struct layer_shape *in = &l->in[0];
	size_t width = layer_width(in);
	struct layer_param p = {.suffix = "weight",
	    .shape = {l->spec.out, width},
	    .dims = 2,
	    .fan_in = width,
	    .fan_out = l->spec.out};
	enum err e = in->dims == 2
	    ? layer_shape_rows(&l->out, in->c, l->spec.out, l->spec.name, why)
	    : layer_shape_set(&l->out, l->spec.out, 1, 1, l->spec.name, why);

	if (e)
		return e;
	if (in->dims == 3)
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": linear needs a flat input; put a flatten layer before it",
		    l->spec.name);
	e = layer_param_add(l, &p, why);
	p.suffix = "bias";
	p.dims = 1;
	p.start = START_BIAS;
	if (!e && l->spec.bias)
		e = layer_param_add(l, &p, why);
	return e ? e : check_lora(l, why);
}

static enum err
check_same(struct layer *l, struct why *why)
{
	(void)why;
	l->out = l->in[0];
	return ERR_OK;
}

static enum err
check_dropout(struct layer *l, struct why *why)
{
	if (!(l->spec.rate >= 0 && l->spec.rate < 1))
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": rate must be at least 0 and below 1", l->spec.name);
	l->out = l->in[0];
	return ERR_OK;
}

static enum err
check_flatten(struct layer *l, struct why *why)
{
	return layer_shape_set(&l->out, l->in[0].size, 1, 1, l->spec.name, why);
}

static enum err
check_add(struct layer *l, struct why *why)
{
	for (size_t i = 1; i < l->spec.input_count; i++)
		if (!layer_shape_same(&l->in[i], &l->in[0]))
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": its inputs are of different shapes", l->spec.name);
	l->out = l->in[0];
	return ERR_OK;
}

/* The second input may hold one value for each channel of the first. */
static enum err
check_multiply(struct layer *l, struct why *why)
{
	const struct layer_shape *a = &l->in[0], *b = &l->in[1];
	bool channels = b->size == a->c && b->dims == 1;

	if (l->spec.input_count != 2 || (!channels && !layer_shape_same(a, b)))
		return err_set(why, ERR_INVALID,
		    "layer \"%s\": it needs two inputs of one shape, or one value for each channel "
		    "as the second",
		    l->spec.name);
	l->out = *a;
	return ERR_OK;
}

/* All dimensions but `dim` agree. */
static enum err
check_concat(struct layer *l, struct why *why)
{
	const struct layer_shape *first = &l->in[0];
	bool across = first->dims == 2 && l->spec.dim == 2; /* the width of rows */
	uint64_t sum = 0;

	if (l->spec.dim != 1 && !across)
		return err_set(why, ERR_UNSUPPORTED,
		    "layer \"%s\": dim must be 1, or 2 of two dimensions", l->spec.name);
	for (size_t i = 0; i < l->spec.input_count; i++) {
		struct layer_shape s = l->in[i];
		sum += across ? s.w : s.c;
		*(across ? &s.w : &s.c) = across ? first->w : first->c;
		if (s.dims != first->dims || !layer_shape_same(&s, first))
			return err_set(why, ERR_INVALID,
			    "layer \"%s\": its inputs differ in more than what is joined",
			    l->spec.name);
	}
	if (first->dims == 2)
		return layer_shape_rows(
		    &l->out, across ? first->c : sum, across ? sum : first->w, l->spec.name, why);
	return layer_shape_set(&l->out, sum, first->h, first->w, l->spec.name, why);
}

static const struct {
	enum err (*check)(struct layer *l, struct why *why);
	struct layer_traits traits;
} types[LAYER_TYPES] = {
    [LAYER_LINEAR] = {check_linear, {.reads_input = true}},
    [LAYER_CONV2D] = {layer_window_conv, {.reads_input = true}},
    [LAYER_CONV1D] = {layer_window_conv, {.reads_input = true}},
    [LAYER_MAXPOOL2D] = {layer_window_pool, {0}},
    [LAYER_AVGPOOL2D] = {layer_window_pool, {0}},
    [LAYER_GLOBAL_AVGPOOL] = {layer_window_global, {0}},
    [LAYER_RELU] = {check_same,
	{.may_alias = true,
	    .reads_sign = true,
	    .follows = true,
	    .reads_output = true,
	    .stands = true}},
    [LAYER_RELU6] = {check_same,
	{.may_alias = true, .follows = true, .reads_output = true, .fixes_output = true}},
    [LAYER_SIGMOID] = {check_same,
	{.may_alias = true, .turns_sign = true, .reads_output = true, .fixes_output = true}},
    [LAYER_TANH] = {check_same, {.may_alias = true, .reads_output = true, .fixes_output = true}},
    [LAYER_GELU] = {check_same, {.reads_input = true}},
    [LAYER_SILU] = {check_same, {.reads_input = true}},
    [LAYER_HARDSWISH] = {check_same, {.reads_input = true}},
    [LAYER_LEAKY_RELU] = {check_same,
	{.may_alias = true, .follows = true, .reads_output = true, .fixes_output = true}},
    [LAYER_ELU] = {check_same, {.may_alias = true, .reads_output = true, .fixes_output = true}},
    [LAYER_FLATTEN] = {check_flatten, {.same_bytes = true}},
    [LAYER_DROPOUT] = {check_dropout, {.may_alias = true, .stands = true}},
    [LAYER_DROPOUT2D] = {check_dropout, {.may_alias = true, .stands = true}},
    [LAYER_ADD] = {check_add, {.many_inputs = true}},
    [LAYER_MULTIPLY] = {check_multiply, {.many_inputs = true, .reads_input = true}},
    [LAYER_CONCAT] = {check_concat, {.many_inputs = true}},
    [LAYER_GROUPNORM] = {layer_norm_groups,
	{.reads_input = true, .spends = true, .stands = true, .renews = true}},
    [LAYER_BATCHNORM] = {layer_norm_batch,
	{.reads_input = true, .spends = true, .stands = true, .renews = true}},
    [LAYER_LAYERNORM] = {layer_norm_rows,
	{.reads_input = true, .spends = true, .stands = true, .renews = true}},
    [LAYER_RMSNORM] = {layer_norm_rows,
	{.reads_input = true, .spends = true, .stands = true, .renews = true}},
    [LAYER_EMBEDDING] = {layer_sequence_embedding, {.reads_input = true}},
    [LAYER_POSITIONS] = {layer_sequence_positions, {.may_alias = true, .turns_sign = true}},
    [LAYER_LSTM] = {layer_sequence_recurrent,
	{.reads_input = true, .reads_output = true, .fixes_output = true}},
    [LAYER_GRU] = {layer_sequence_recurrent,
	{.reads_input = true, .reads_output = true, .fixes_output = true}},
    [LAYER_ATTENTION] = {layer_sequence_attention, {.reads_input = true}},
    [LAYER_REVERSE] = {layer_sequence_reverse, {0}},
    [LAYER_POOL_STEPS] = {layer_sequence_pool, {0}},
    [LAYER_SCALE] = {check_same, {.may_alias = true, .turns_sign = true}},
};

enum err
layer_check_type(const struct layer *l, struct why *why)
{
	if (l->spec.type < 0 || l->spec.type >= LAYER_TYPES)
		return err_set(why, ERR_UNSUPPORTED, "layer \"%s\": unknown type", l->spec.name);
	return ERR_OK;
}

const struct layer_traits *
layer_traits(enum layer_type type)
{
	return &types[type].traits;
}

double
layer_work(const struct layer *l)
{
	const struct layer_spec *s = &l->spec;
	double out = (double)l->out.size, rows = (double)layer_rows(&l->in[0]);

	switch (s->type) {
	case LAYER_LINEAR:
		return ((double)l->param[PARAM_WEIGHT].count +
			   (double)s->rank * ((double)layer_width(&l->in[0]) + (double)s->out)) *
		    rows;
	case LAYER_CONV2D:
	case LAYER_CONV1D:
	case LAYER_MAXPOOL2D:
	case LAYER_AVGPOOL2D:
		return layer_window_work(l);
	case LAYER_LSTM:
	case LAYER_GRU:
	case LAYER_ATTENTION:
		return layer_sequence_work(l);
	case LAYER_SIGMOID:
	case LAYER_TANH:
	case LAYER_GELU:
	case LAYER_SILU:
	case LAYER_ELU:
	case LAYER_GROUPNORM:
	case LAYER_LAYERNORM:
	case LAYER_RMSNORM:
	case LAYER_BATCHNORM:
		return 8 * out;
	case LAYER_GLOBAL_AVGPOOL:
	case LAYER_POOL_STEPS:
		return (double)l->in[0].size;
	default:
		return out;
	}
}

enum err
layer_check(struct layer *l, struct why *why)
{
	return types[l->spec.type].check(l, why);
}
