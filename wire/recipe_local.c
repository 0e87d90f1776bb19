#include "recipe_parts.h"

#include <string.h>

#define RATE_MAX 1e6
#define GAMMA_MAX 10.0

static const char *const schedule_names[] = {[SCHEDULE_CONSTANT] = "constant",
    [SCHEDULE_STEP] = "step",
    [SCHEDULE_COSINE] = "cosine",
    [SCHEDULE_LINEAR] = "linear",
    [SCHEDULE_WSD] = "wsd",
    NULL};

static void
read_amount(struct local_spec *out, struct field *local)
{
	static const struct {
		const char *key;
		double min, max;
	} units[] = {
	    [LOCAL_EPOCHS] = {"epochs", 1, RECIPE_EPOCHS_MAX},
	    [LOCAL_STEPS] = {"steps", 1, RECIPE_STEPS_MAX},
	    [LOCAL_SECONDS] = {"seconds", 1e-3, RECIPE_SECONDS_MAX},
	};
	size_t given = 0;

	out->unit = LOCAL_EPOCHS;
	out->amount = 1;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!field_has(local, units[i].key))
			continue;
		if (++given > 1)
			field_fail(local, units[i].key, "only one of epochs, steps and seconds");
		out->unit = (enum local_unit)i;
		out->amount = out->unit == LOCAL_SECONDS
		    ? field_double(local, units[i].key, units[i].min, units[i].max, 1)
		    : (double)field_u64(
			  local, units[i].key, 1, (uint64_t)units[i].max, FIELD_MUST_U64);
	}
}

static void
read_optimizer(struct recipe *out, struct field *local)
{
	struct field o = field_object(local, "optimizer");
	struct optimizer_spec *s = &out->local.optimizer;
	bool builtin = strcmp(out->trainer, "builtin") == 0;

	field_string(&o, "name", FIELD_NAME, s->name, sizeof(s->name), "sgd");
	if (builtin && strcmp(s->name, "sgd") != 0)
		field_fail(&o, "name", "the built-in trainer has \"sgd\" only");
	s->rate = field_double(&o, "rate", 0, RATE_MAX, builtin ? FIELD_MUST_DOUBLE : 0);
	s->momentum = field_double(&o, "momentum", 0, RECIPE_SHARE_MAX, 0);
	s->weight_decay = field_double(&o, "weight_decay", 0, RATE_MAX, 0);
	field_end(&o);
}

void
recipe_schedule_read(struct schedule_spec *out, struct field *parent)
{
	struct field o = field_object(parent, "schedule");

	out->type = (enum schedule_type)field_choice(&o, "type", schedule_names, SCHEDULE_CONSTANT);
	out->warmup = (uint32_t)field_u64(&o, "warmup", 0, RECIPE_ROUNDS_MAX, 0);
	out->gamma = 1;
	if (out->type == SCHEDULE_STEP) {
		out->every = (uint32_t)field_u64(&o, "every", 1, RECIPE_ROUNDS_MAX, FIELD_MUST_U64);
		out->gamma = field_double(&o, "gamma", 0, GAMMA_MAX, FIELD_MUST_DOUBLE);
	}
	if (out->type == SCHEDULE_WSD)
		out->stable =
		    (uint32_t)field_u64(&o, "stable", 0, RECIPE_ROUNDS_MAX, FIELD_MUST_U64);
	if (out->type == SCHEDULE_COSINE || out->type == SCHEDULE_LINEAR ||
	    out->type == SCHEDULE_WSD) {
		out->period =
		    (uint32_t)field_u64(&o, "period", 1, RECIPE_ROUNDS_MAX, FIELD_MUST_U64);
		out->floor = field_double(&o, "floor", 0, 1, 0);
	}
	field_end(&o);
}

void
recipe_local_read(struct recipe *out, struct field *doc)
{
	struct field local = field_object(doc, "local");

	read_amount(&out->local, &local);
	out->local.batch = (uint32_t)field_u64(&local, "batch", 0, RECIPE_BATCH_MAX, 10);
	read_optimizer(out, &local);
	recipe_schedule_read(&out->local.schedule, &local);
	field_end(&local);
}
