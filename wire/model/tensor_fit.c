#include "tensor.h"

#include <stdio.h>
#include <string.h>

/* "F32 [10, 5]" */
#define KIND_MAX 224

static const char *
kind(char out[KIND_MAX], const struct tensor *t)
{
	size_t n = (size_t)snprintf(out, KIND_MAX, "%s [", tensor_dtype_name(t->dtype));

	for (unsigned i = 0; i < t->dims; i++)
		n += (size_t)snprintf(out + n, KIND_MAX - n, "%s%llu", i ? ", " : "",
		    (unsigned long long)t->shape[i]);
	snprintf(out + n, KIND_MAX - n, "]");
	return out;
}

/* Which of them stands before this name in the table's? NULL if none does. */
static const char *
wrapped_by(const struct tensor_table *have, const char *name)
{
	char wrapped[2 * TENSOR_NAME_MAX];

	for (const char *const *p = tensor_wrappers(); *p; p++) {
		snprintf(wrapped, sizeof(wrapped), "%s%s", *p, name);
		if (tensor_table_find(have, wrapped))
			return *p;
	}
	return NULL;
}

const char *const *
tensor_wrappers(void)
{
	/* torch.nn.DataParallel and DistributedDataParallel; torch.compile. */
	static const char *const wrappers[] = {"module.", "_orig_mod.", NULL};

	return wrappers;
}

static enum err
missing(const struct tensor_table *have, const char *name, struct why *why)
{
	const char *prefix = wrapped_by(have, name);

	if (!prefix)
		return err_set(why, ERR_INVALID, "tensor \"%.100s\" is missing", name);
	return err_set(why, ERR_INVALID,
	    "tensor \"%.60s\" is missing, but there is \"%s%.60s\": save the state_dict of "
	    "model.%.*s",
	    name, prefix, name, (int)strlen(prefix) - 1, prefix);
}

static enum err
other(const struct tensor *want, const struct tensor *have, struct why *why)
{
	char left[KIND_MAX], right[KIND_MAX];

	return err_set(why, ERR_INVALID, "tensor \"%.80s\" is %.70s, the layers have %.70s",
	    want->name, kind(left, have), kind(right, want));
}

enum err
tensor_table_fits(const struct tensor_table *want, const struct tensor_table *have, struct why *why)
{
	for (size_t i = 0; i < want->count; i++) {
		const struct tensor *own = &want->items[i];
		const struct tensor *there = tensor_table_find(have, own->name);
		if (!there)
			return missing(have, own->name, why);
		if (!tensor_same(own, there))
			return other(own, there, why);
	}
	for (size_t i = 0; have->count != want->count && i < have->count; i++)
		if (!tensor_table_find(want, have->items[i].name))
			return err_set(why, ERR_INVALID, "tensor \"%.100s\" is of no layer",
			    have->items[i].name);
	return ERR_OK;
}

/* --- numbers */

#define EXPONENT 0x7f800000u /* all ones of an f32 that is no finite number */

bool
tensor_is_finite(const struct tensor *t, const void *data)
{
	const uint8_t *p = (const uint8_t *)data + t->begin;
	uint32_t bad = 0;

	for (uint64_t i = 0; i < t->elements && !bad; i++, p += sizeof(uint32_t)) {
		uint32_t bits;
		memcpy(&bits, p, sizeof(bits));
		bad = (bits & EXPONENT) == EXPONENT;
	}
	return !bad;
}

enum err
tensor_check_finite(
    const struct tensor *t, enum tensor_role role, const void *data, struct why *why)
{
	const bool moves = role == TENSOR_TRAIN || role == TENSOR_AVERAGE;

	if (!moves || t->dtype != TENSOR_F32 || tensor_is_finite(t, data))
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "tensor \"%.80s\" holds NaN or infinity, and is to be %s: fix the model, or make the "
	    "tensor \"frozen\"",
	    t->name, role == TENSOR_TRAIN ? "trained" : "averaged");
}
