#include "layer_sequence.h"

#include "num.h"

enum err
layer_sequence_embedding(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	const struct layer_param p = {.suffix = "weight",
	    .shape = {s->vocabulary, s->out},
	    .dims = 2,
	    .fan_in = s->out,
	    .fan_out = s->out};
	enum err e = layer_shape_rows(&l->out, l->in[0].c, s->out, s->name, why);

	if (!e && (l->in[0].dims != 1 || s->inputs[0] != LAYER_INPUT))
		e = err_set(why, ERR_INVALID,
		    "layer \"%s\": an embedding reads the network's input, a flat one of whole "
		    "numbers",
		    s->name);
	return e ? e : layer_param_add(l, &p, why);
}

static enum err
check_sequence(const struct layer *l, struct why *why)
{
	return l->in[0].dims == 2
	    ? ERR_OK
	    : err_set(why, ERR_INVALID,
		  "layer \"%s\": it needs a sequence, an input of two dimensions", l->spec.name);
}

enum err
layer_sequence_positions(struct layer *l, struct why *why)
{
	const struct layer_param p = {.suffix = "weight",
	    .shape = {l->in[0].c, l->in[0].w},
	    .dims = 2,
	    .fan_in = l->in[0].w,
	    .fan_out = l->in[0].w};
	enum err e = check_sequence(l, why);

	l->out = l->in[0];
	return e ? e : layer_param_add(l, &p, why);
}

static enum err
add_recurrent(struct layer *l, unsigned layer, uint64_t in, struct why *why)
{
	static const char *const names[NET_SPEC_STACK_MAX][4] = {
	    {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"},
	    {"weight_ih_l1", "weight_hh_l1", "bias_ih_l1", "bias_hh_l1"},
	    {"weight_ih_l2", "weight_hh_l2", "bias_ih_l2", "bias_hh_l2"},
	    {"weight_ih_l3", "weight_hh_l3", "bias_ih_l3", "bias_hh_l3"}};
	uint64_t out = l->spec.out, rows = out * layer_sequence_gates(l->spec.type);
	enum err e = ERR_OK;

	for (int i = 0; !e && i < (l->spec.bias ? 4 : 2); i++) {
		const struct layer_param p = {.suffix = names[layer][i],
		    .shape = {rows, i == 0 ? in : out},
		    .dims = i < 2 ? 2 : 1,
		    .fan_in = (size_t)out,
		    .fan_out = (size_t)out,
		    .start = i < 2 ? START_WEIGHT : START_BIAS};
		e = layer_param_add(l, &p, why);
	}
	return e;
}

enum err
layer_sequence_recurrent(struct layer *l, struct why *why)
{
	const struct layer_spec *s = &l->spec;
	enum err e = check_sequence(l, why);

	if (!e)
		e = s->last ? layer_shape_set(&l->out, s->out, 1, 1, s->name, why)
			    : layer_shape_rows(&l->out, l->in[0].c, s->out, s->name, why);
	if (!e && (s->stack == 0 || s->stack > NET_SPEC_STACK_MAX))
		e = err_set(why, ERR_INVALID, "layer \"%s\": it needs 1 to %d layers", s->name,
		    NET_SPEC_STACK_MAX);
	for (unsigned i = 0; !e && i < s->stack; i++)
		e = add_recurrent(l, i, i == 0 ? l->in[0].w : s->out, why);
	return e;
}

enum err
layer_sequence_attention(struct layer *l, struct why *why)
{
	static const char *const names[] = {
	    "in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"};
	const struct layer_spec *s = &l->spec;
	uint64_t width = l->in[0].w;
	enum err e = check_sequence(l, why);

	if (!e && (s->heads == 0 || width % s->heads != 0))
		e = err_set(why, ERR_INVALID,
		    "layer \"%s\": a width of %llu does not fall into %u heads", s->name,
		    (unsigned long long)width, s->heads);
	if (!e && !(s->rate >= 0 && s->rate < 1))
		e = err_set(why, ERR_INVALID,
		    "layer \"%s\": dropout must be at least 0 and below 1", s->name);
	if (!e && s->rotation == ROTATION_ROTARY && width / s->heads % 2 != 0)
		e = err_set(why, ERR_INVALID,
		    "layer \"%s\": rotary positions need heads of an even width", s->name);
	l->out = l->in[0];
	for (int i = 0; !e && i < 4; i++) {
		const struct layer_param p = {.suffix = names[i],
		    .shape = {i < 2 ? 3 * width : width, width},
		    .dims = i % 2 == 0 ? 2 : 1,
		    .fan_in = (size_t)width,
		    .fan_out = (size_t)(i < 2 ? 3 * width : width),
		    .start = i % 2 == 0 ? START_WEIGHT : START_ZERO};
		if (i % 2 == 0 || s->bias)
			e = layer_param_add(l, &p, why);
	}
	return e;
}

enum err
layer_sequence_reverse(struct layer *l, struct why *why)
{
	l->out = l->in[0];
	return check_sequence(l, why);
}

enum err
layer_sequence_pool(struct layer *l, struct why *why)
{
	enum err e = check_sequence(l, why);

	return e ? e : layer_shape_set(&l->out, l->in[0].w, 1, 1, l->spec.name, why);
}

double
layer_sequence_work(const struct layer *l)
{
	double rows = (double)layer_rows(&l->in[0]), weights = 0;

	for (size_t i = 0; i < l->param_count; i++)
		weights += (double)l->param[i].count;
	if (l->spec.type != LAYER_ATTENTION)
		return rows * (weights + 16 * (double)l->spec.out * l->spec.stack);
	return rows * (weights + 2 * rows * (double)l->in[0].w + 8 * rows * l->spec.heads);
}
