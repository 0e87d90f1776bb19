#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#include "shown.h"

static const struct {
	const char *name;
	uint8_t size;
} dtypes[] = {
    [TENSOR_F32] = {"F32", 4},
    [TENSOR_F64] = {"F64", 8},
    [TENSOR_F16] = {"F16", 2},
    [TENSOR_BF16] = {"BF16", 2},
    [TENSOR_I8] = {"I8", 1},
    [TENSOR_U8] = {"U8", 1},
    [TENSOR_I16] = {"I16", 2},
    [TENSOR_U16] = {"U16", 2},
    [TENSOR_I32] = {"I32", 4},
    [TENSOR_U32] = {"U32", 4},
    [TENSOR_I64] = {"I64", 8},
    [TENSOR_U64] = {"U64", 8},
    [TENSOR_BOOL] = {"BOOL", 1},
};
#define DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

static const char *const roles[] = {
    [TENSOR_TRAIN] = "train",
    [TENSOR_AVERAGE] = "average",
    [TENSOR_FROZEN] = "frozen",
    [TENSOR_LOCAL] = "local",
};
#define ROLES (sizeof(roles) / sizeof(roles[0]))

size_t
tensor_dtype_size(enum tensor_dtype dtype)
{
	return dtypes[dtype].size;
}

const char *
tensor_dtype_name(enum tensor_dtype dtype)
{
	return dtypes[dtype].name;
}

bool
tensor_dtype_find(const char *name, enum tensor_dtype *out)
{
	for (size_t i = 0; i < DTYPES; i++) {
		if (strcmp(dtypes[i].name, name) == 0) {
			*out = (enum tensor_dtype)i;
			return true;
		}
	}
	return false;
}

const char *
tensor_role_name(enum tensor_role role)
{
	return roles[role];
}

static enum tensor_role
default_role(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F32 ? TENSOR_TRAIN : TENSOR_FROZEN;
}

static enum err
check_name(const char *name, struct why *why)
{
	size_t len = strlen(name);

	if (len == 0)
		return err_set(why, ERR_INVALID, "a tensor has an empty name");
	if (len >= TENSOR_NAME_MAX)
		return err_set(
		    why, ERR_LIMIT, "a tensor name is longer than %d bytes", TENSOR_NAME_MAX - 1);
	if (!shown_is(name))
		return err_set(why, ERR_INVALID,
		    "a tensor name holds a control character, or one that reorders text");
	if (strcmp(name, "__metadata__") == 0)
		return err_set(why, ERR_INVALID, "a tensor cannot be named __metadata__");
	return ERR_OK;
}

enum err
tensor_init(struct tensor *out, const char *name, enum tensor_dtype dtype, const uint64_t *shape,
    unsigned dims, struct why *why)
{
	uint64_t max = TENSOR_BYTES_MAX / tensor_dtype_size(dtype);
	uint64_t elements = 1;
	enum err e = check_name(name, why);

	if (e)
		return e;
	if (dims > TENSOR_DIMS_MAX)
		return err_set(why, ERR_LIMIT, "tensor \"%s\" has more than %d dimensions", name,
		    TENSOR_DIMS_MAX);
	/* The product of every prefix is bounded, so a later zero cannot hide an overflow. */
	for (unsigned i = 0; i < dims; i++)
		if (__builtin_mul_overflow(elements, shape[i], &elements) || elements > max)
			return err_set(why, ERR_LIMIT, "tensor \"%s\" is too large", name);
	*out = (struct tensor){.dtype = dtype, .role = default_role(dtype), .dims = dims};
	memcpy(out->name, name, strlen(name));
	if (dims > 0)
		memcpy(out->shape, shape, dims * sizeof(*shape));
	out->elements = elements;
	return ERR_OK;
}

uint64_t
tensor_bytes(const struct tensor *t)
{
	return t->elements * tensor_dtype_size(t->dtype);
}

/* Makes room for one more item. Asking again for the same power of two costs nothing. */
static enum err
grow(struct tensor_table *t)
{
	size_t room = 1;

	while (room <= t->count)
		room *= 2;
	struct tensor *items = realloc(t->items, room * sizeof(*items));
	if (!items)
		return ERR_NOMEM;
	t->items = items;
	return ERR_OK;
}

enum err
tensor_table_add(
    struct tensor_table *t, const char *name, const uint64_t *shape, unsigned dims, struct why *why)
{
	struct tensor item = {0};
	enum err e = tensor_init(&item, name, TENSOR_F32, shape, dims, why);

	if (e)
		return e;
	if (tensor_table_find(t, name))
		return err_set(why, ERR_EXISTS, "two tensors are named \"%s\"", name);
	if (t->count >= TENSOR_COUNT_MAX)
		return err_set(why, ERR_LIMIT, "more than %d tensors", TENSOR_COUNT_MAX);
	if (tensor_bytes(&item) > TENSOR_BYTES_MAX - t->bytes)
		return err_set(why, ERR_LIMIT, "the model is too large at tensor \"%s\"", name);
	if (grow(t))
		return err_set(why, ERR_NOMEM, "no memory for the tensor table");
	item.begin = t->bytes;
	item.end = item.begin + tensor_bytes(&item);
	item.first = t->elements;
	item.in_delta = true;
	t->items[t->count++] = item;
	t->bytes = item.end;
	t->elements += item.elements;
	return ERR_OK;
}

/* The first place is enough for each part between two '*': a later one leaves less for the rest. */
static bool
matches(const char *pattern, const char *name)
{
	size_t left = strlen(name), len = strcspn(pattern, "*");

	if (!pattern[len])
		return strcmp(pattern, name) == 0;
	if (strncmp(pattern, name, len) != 0)
		return false;
	name += len;
	left -= len;
	for (pattern += len + 1; pattern[len = strcspn(pattern, "*")]; pattern += len + 1) {
		const char *at = memmem(name, left, pattern, len);
		if (!at)
			return false;
		left -= (size_t)(at - name) + len;
		name = at + len;
	}
	return len <= left && memcmp(name + left - len, pattern, len) == 0;
}

enum tensor_role
tensor_role_of(const struct tensor *t, const struct tensor_rule *rules, size_t rule_count)
{
	for (size_t i = 0; i < rule_count; i++)
		if (matches(rules[i].pattern, t->name))
			return rules[i].role;
	return default_role(t->dtype);
}

static bool
travels(enum tensor_role role)
{
	return role == TENSOR_TRAIN || role == TENSOR_AVERAGE;
}

enum err
tensor_table_bound(const struct tensor_table *t, const struct tensor_rule *rules, size_t rule_count,
    struct why *why)
{
	uint64_t names = 0, patterns = 0;

	for (size_t i = 0; i < t->count; i++)
		names += strlen(t->items[i].name);
	for (size_t i = 0; i < rule_count; i++)
		patterns += strchr(rules[i].pattern, '*') ? strlen(rules[i].pattern) : 1;
	if (names * patterns <= TENSOR_MATCH_MAX)
		return ERR_OK;
	return err_set(why, ERR_LIMIT,
	    "tensors: patterns of %llu bytes in all for names of %llu bytes in all; their product "
	    "may be %u at most",
	    (unsigned long long)patterns, (unsigned long long)names, TENSOR_MATCH_MAX);
}

enum err
tensor_table_assign(
    struct tensor_table *t, const struct tensor_rule *rules, size_t rule_count, struct why *why)
{
	uint8_t fits[TENSOR_COUNT_MAX];

	for (size_t i = 0; i < t->count; i++) {
		const struct tensor *item = &t->items[i];
		enum tensor_role role = tensor_role_of(item, rules, rule_count);
		if (travels(role) && item->dtype != TENSOR_F32)
			return err_set(why, ERR_INVALID,
			    "tensor \"%s\" is %s; only F32 can have the role %s", item->name,
			    tensor_dtype_name(item->dtype), tensor_role_name(role));
		fits[i] = (uint8_t)role;
	}
	t->elements = 0;
	for (size_t i = 0; i < t->count; i++) {
		struct tensor *item = &t->items[i];
		item->role = (enum tensor_role)fits[i];
		item->in_delta = travels(item->role);
		item->first = t->elements;
		if (item->in_delta)
			t->elements += item->elements;
	}
	return ERR_OK;
}

const struct tensor_rule *
tensor_table_unused(
    const struct tensor_table *t, const struct tensor_rule *rules, size_t rule_count)
{
	for (size_t i = 0; i < rule_count; i++) {
		size_t at = 0;
		while (at < t->count && !matches(rules[i].pattern, t->items[at].name))
			at++;
		if (at == t->count)
			return &rules[i];
	}
	return NULL;
}

const struct tensor *
tensor_table_find(const struct tensor_table *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->items[i].name, name) == 0)
			return &t->items[i];
	return NULL;
}

bool
tensor_same(const struct tensor *a, const struct tensor *b)
{
	return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->dims == b->dims &&
	    memcmp(a->shape, b->shape, sizeof(a->shape)) == 0;
}

bool
tensor_table_same(const struct tensor_table *a, const struct tensor_table *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!tensor_same(&a->items[i], &b->items[i]))
			return false;
	return true;
}

bool
tensor_table_piece(
    const struct tensor_table *t, size_t *i, uint64_t first, size_t count, struct tensor_piece *out)
{
	for (; *i < t->count; ++*i) {
		const struct tensor *own = &t->items[*i];
		uint64_t from = own->first > first ? own->first : first;
		uint64_t end = own->first + own->elements;
		if (!own->in_delta || end <= first || from >= first + count)
			continue;
		if (end > first + count)
			end = first + count;
		*out = (struct tensor_piece){own, from,
		    own->begin + (from - own->first) * sizeof(float), (size_t)(end - from)};
		++*i;
		return true;
	}
	return false;
}

enum err
tensor_table_copy(struct tensor_table *out, const struct tensor_table *in)
{
	struct tensor_table copy = *in;

	copy.items = malloc((in->count + 1) * sizeof(*copy.items));
	if (!copy.items)
		return ERR_NOMEM;
	if (in->count > 0)
		memcpy(copy.items, in->items, in->count * sizeof(*copy.items));
	*out = copy;
	return ERR_OK;
}

void
tensor_table_deinit(struct tensor_table *t)
{
	free(t->items);
	*t = (struct tensor_table){0};
}
