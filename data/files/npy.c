#include "npy.h"

#include <stdlib.h>
#include <string.h>

/* The head is a Python dictionary of three keys: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), } */
struct head {
	const char *at;
	struct array array;
	bool has_type, has_order, has_shape;
	struct why *why;
};

static enum err
wrong(const struct head *h, const char *what)
{
	return err_set(h->why, ERR_INVALID, "the head of the NPY file: %s", what);
}

static void
skip_blanks(struct head *h)
{
	h->at += strspn(h->at, " \t\n");
}

/* Is c next? Then it is behind. */
static bool
takes(struct head *h, char c)
{
	skip_blanks(h);
	if (*h->at != c)
		return false;
	h->at++;
	return true;
}

/* A text in quotes of at most `room` bytes with the end. */
static bool
read_text(struct head *h, char *out, size_t room)
{
	skip_blanks(h);
	char quote = *h->at;
	if (quote != '\'' && quote != '"')
		return false;
	size_t len = strcspn(h->at + 1, quote == '"' ? "\"" : "'");
	if (!h->at[1 + len] || len >= room)
		return false;
	memcpy(out, h->at + 1, len);
	out[len] = '\0';
	h->at += len + 2;
	return true;
}

static enum err
read_type(struct head *h)
{
	static const struct {
		const char *code;
		enum dataset_type type;
	} types[] = {{"u1", DATASET_U8}, {"b1", DATASET_I8}, {"i1", DATASET_I8},
	    {"i2", DATASET_I16}, {"i4", DATASET_I32}, {"i8", DATASET_I64}, {"f4", DATASET_F32},
	    {"f8", DATASET_F64}};
	char text[8];

	if (!read_text(h, text, sizeof(text)))
		return wrong(h, "descr is no simple type: records are not read");
	if (!*text || !strchr("<>|=", *text))
		return wrong(h, "descr does not begin with an order of bytes");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].code, text + 1) == 0) {
			h->array.type = types[i].type;
			h->array.big_endian = *text == '>';
			h->has_type = true;
			return ERR_OK;
		}
	return err_set(h->why, ERR_UNSUPPORTED,
	    "the NPY file has another type than u1, i1, i2, i4, i8, f4, f8 and b1; astype converts "
	    "it");
}

static enum err
read_order(struct head *h)
{
	skip_blanks(h);
	if (strncmp(h->at, "True", 4) == 0)
		return err_set(h->why, ERR_UNSUPPORTED,
		    "the NPY file is in Fortran order; numpy.ascontiguousarray converts it");
	if (strncmp(h->at, "False", 5) != 0)
		return wrong(h, "fortran_order is neither True nor False");
	h->at += 5;
	h->has_order = true;
	return ERR_OK;
}

static enum err
read_size(struct head *h)
{
	uint64_t n = 0;

	skip_blanks(h);
	if (*h->at < '0' || *h->at > '9')
		return wrong(h, "shape is not a tuple of numbers");
	for (; *h->at >= '0' && *h->at <= '9'; h->at++) {
		if (n > DATASET_BYTES_MAX)
			return wrong(h, "shape holds too large a number");
		n = n * 10 + (uint64_t)(*h->at - '0');
	}
	if (h->array.dims == ARRAY_DIMS_MAX)
		return wrong(h, "shape has more than 4 dimensions");
	h->array.size[h->array.dims++] = n;
	return ERR_OK;
}

static enum err
read_shape(struct head *h)
{
	if (!takes(h, '('))
		return wrong(h, "shape is not a tuple of numbers");
	h->array.dims = 0;
	while (!takes(h, ')')) {
		enum err e = read_size(h);
		if (e)
			return e;
		if (!takes(h, ',') && *h->at != ')')
			return wrong(h, "shape is not a tuple of numbers");
	}
	if (h->array.dims == 0)
		return wrong(h, "shape has no dimensions");
	h->has_shape = true;
	return ERR_OK;
}

static enum err
read_pair(struct head *h)
{
	static const struct {
		const char *name;
		enum err (*read)(struct head *);
	} keys[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
	char key[16];

	if (!read_text(h, key, sizeof(key)) || !takes(h, ':'))
		return wrong(h, "not a dictionary of descr, fortran_order and shape");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i].name, key) == 0)
			return keys[i].read(h);
	return wrong(h, "a key that is none of descr, fortran_order and shape");
}

static enum err
read_dictionary(struct head *h)
{
	if (!takes(h, '{'))
		return wrong(h, "not a dictionary of descr, fortran_order and shape");
	while (!takes(h, '}')) {
		enum err e = read_pair(h);
		if (e)
			return e;
		if (!takes(h, ',') && *h->at != '}')
			return wrong(h, "not a dictionary of descr, fortran_order and shape");
	}
	skip_blanks(h);
	if (*h->at)
		return wrong(h, "something follows the dictionary");
	return h->has_type && h->has_order && h->has_shape
	    ? ERR_OK
	    : wrong(h, "descr, fortran_order or shape is missing");
}

/* The length of the head's text, and how many bytes stand before it. */
static enum err
read_length(struct unpack *io, size_t *len, size_t *before, struct why *why)
{
	uint8_t b[12];
	enum err e = unpack_take(io, b, 8, why);

	if (e)
		return e;
	if (memcmp(b, "\x93NUMPY", 6) != 0)
		return err_set(why, ERR_INVALID, "this is not an NPY file");
	if (b[6] < 1 || b[6] > 3 || b[7] != 0)
		return err_set(why, ERR_UNSUPPORTED, "byte 7: NPY format %u.%u", b[6], b[7]);
	size_t wide = b[6] == 1 ? 2 : 4;
	e = unpack_take(io, b + 8, wide, why);
	if (e)
		return e;
	*len = b[8] | (size_t)b[9] << 8;
	if (wide == 4)
		*len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
	*before = 8 + wide;
	return *len <= NPY_HEAD_MAX
	    ? ERR_OK
	    : err_set(why, ERR_LIMIT, "the head of the NPY file claims more than %d bytes",
		  NPY_HEAD_MAX);
}

enum err
npy_head(struct array *out, struct unpack *io, struct why *why)
{
	struct head h = {.why = why};
	size_t len = 0, before = 0;
	enum err e = read_length(io, &len, &before, why);

	if (e)
		return e;
	char *text = malloc(len + 1);
	if (!text)
		return err_set(why, ERR_NOMEM, "no memory for the head of the NPY file");
	e = unpack_take(io, text, len, why);
	text[len] = '\0';
	h.at = text;
	if (!e && strlen(text) != len)
		e = wrong(&h, "holds a zero byte");
	if (!e)
		e = read_dictionary(&h);
	free(text);
	h.array.at = before + len;
	if (!e)
		e = array_check(&h.array, unpack_most(io), why);
	if (!e)
		*out = h.array;
	return e;
}
