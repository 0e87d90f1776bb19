#include "layer_norm.h"

static enum err
check_epsilon(const struct layer *l, struct why *why)
{
	return l->spec.epsilon > 0
	    ? ERR_OK
	    : err_set(why, ERR_INVALID, "layer \"%s\": epsilon must be above 0", l->spec.name);
}

/* What scales and shifts `count` channels or features. */
static enum err
add_affine(struct layer *l, uint64_t count, bool shift, struct why *why)
{
	struct layer_param p = {.suffix = "weight",
	    .shape = {count},
	    .dims = 1,
	    .fan_in = 1,
	    .fan_out = 1,
	    .start = START_ONE};
	enum err e = l->spec.bias ? layer_param_add(l, &p, why) : ERR_OK;

	p.suffix = "bias";
	p.start = START_ZERO;
	return e || !l->spec.bias || !shift ? e : layer_param_add(l, &p, why);
}

enum err
layer_norm_groups(struct layer *l, struct why *why)
{
	enum err e = check_epsilon(l, why);

	if (!e && (l->spec.groups == 0 || l->in[0].c % l->spec.groups != 0))
		e = err_set(why, ERR_INVALID,
		    "layer \"%s\": %u channels do not fall into %u groups", l->spec.name,
		    l->in[0].c, l->spec.groups);
	l->out = l->in[0];
	return e ? e : add_affine(l, l->in[0].c, true, why);
}

enum err
layer_norm_batch(struct layer *l, struct why *why)
{
	struct layer_param p = {.suffix = "running_mean",
	    .shape = {l->in[0].c},
	    .dims = 1,
	    .fan_in = 1,
	    .fan_out = 1,
	    .start = START_ZERO,
	    .counts = true,
	    .hold = true};
	enum err e = check_epsilon(l, why);

	l->out = l->in[0];
	if (!e)
		e = add_affine(l, l->in[0].c, true, why);
	if (!e)
		e = layer_param_add(l, &p, why);
	p.suffix = "running_var";
	p.start = START_ONE;
	return e ? e : layer_param_add(l, &p, why);
}

enum err
layer_norm_rows(struct layer *l, struct why *why)
{
	enum err e = check_epsilon(l, why);

	if (!e && l->in[0].dims == 3)
		e = err_set(why, ERR_INVALID, "layer \"%s\": it needs a flat input or a sequence",
		    l->spec.name);
	l->out = l->in[0];
	return e ? e : add_affine(l, layer_width(&l->in[0]), l->spec.type == LAYER_LAYERNORM, why);
}
