#include "packed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "net_spec.h"
#include "shown.h"

#define MAGIC "RVP1"
#define VERSION 1

uint64_t
packed_labels_at(const struct packed *p)
{
	return PACKED_HEAD +
	    (uint64_t)p->array.count * p->array.features * dataset_type_size(p->array.type);
}

static uint64_t
groups_at(const struct packed *p)
{
	return packed_labels_at(p) +
	    (uint64_t)p->array.count * 4 * (p->target_width ? p->target_width : 1);
}

uint64_t
packed_names_at(const struct packed *p)
{
	return groups_at(p) + (p->groups ? (uint64_t)p->array.count * 4 : 0);
}

uint64_t
packed_length(const struct packed *p)
{
	return packed_names_at(p) + p->names_bytes;
}

void
packed_encode(uint8_t out[PACKED_HASH_AT], const struct packed *p)
{
	struct bytes_writer w = bytes_writer(out, PACKED_HASH_AT);
	struct dataset d;

	array_shape(&d, &p->array);
	bytes_put(&w, MAGIC, 4);
	bytes_put_u16(&w, VERSION);
	bytes_put_u16(&w, PACKED_HEAD);
	bytes_put_u16(&w, p->array.type == DATASET_U8 ? 0 : 1);
	bytes_put_u16(&w, (uint16_t)d.dims);
	for (int i = 0; i < 3; i++)
		bytes_put_u32(&w, d.shape[i]);
	bytes_put_u64(&w, p->array.count);
	bytes_put_u32(&w, p->classes);
	bytes_put_u32(&w, p->target_width);
	bytes_put_u32(&w, p->groups);
	bytes_put_u32(&w, 0);
	bytes_put_u64(&w, p->names_bytes);
	bytes_put_u64(&w, packed_length(p));
	bytes_put_zeros(&w, w.left);
}

/* The fields one after the other; false if one is none that this version writes. */
static bool
read_fields(struct packed *p, struct bytes_reader *r, uint64_t *length)
{
	struct array *a = &p->array;
	uint16_t type = bytes_get_u16(r), dims = bytes_get_u16(r);
	uint32_t shape[3];

	for (int i = 0; i < 3; i++)
		shape[i] = bytes_get_u32(r);
	a->type = type == 0 ? DATASET_U8 : DATASET_F32;
	a->dims = dims == 1 ? 2 : 4;
	a->size[0] = bytes_get_u64(r);
	for (int i = 0; i < 3; i++)
		a->size[i + 1] = shape[i];
	a->at = PACKED_HEAD;
	p->classes = bytes_get_u32(r);
	p->target_width = bytes_get_u32(r);
	p->groups = bytes_get_u32(r);
	uint32_t zero = bytes_get_u32(r);
	p->names_bytes = bytes_get_u64(r);
	*length = bytes_get_u64(r);
	return type <= 1 && (dims == 3 || (dims == 1 && shape[1] == 1 && shape[2] == 1)) &&
	    zero == 0 && (p->classes == 0) != (p->target_width == 0) &&
	    p->classes <= RECIPE_CLASSES_MAX && p->names_bytes <= PACKED_NAMES_MAX &&
	    bytes_get_zeros(r, r->left);
}

/* Where the name ends; 0: it is none. */
static size_t
name_length(const char *name, size_t left)
{
	size_t at = 0, n;

	while (at < left && at <= PACKED_NAME_MAX && (n = shown_char(name + at, left - at)) > 0)
		at += n;
	return at <= PACKED_NAME_MAX && at < left && name[at] == '\n' ? at : 0;
}

enum err
packed_names_check(const char *names, size_t bytes, uint32_t classes, struct why *why)
{
	uint32_t lines = 0;

	for (size_t at = 0, n; at < bytes && lines < classes; at += n + 1, lines++)
		if ((n = name_length(names + at, bytes - at)) == 0)
			return err_set(why, ERR_INVALID,
			    "the name of class %u is empty, longer than %d bytes, or has "
			    "characters that "
			    "cannot be shown",
			    lines, PACKED_NAME_MAX);
		else if (lines + 1 == classes && at + n + 1 == bytes)
			return ERR_OK;
	return err_set(why, ERR_INVALID, "the class names are not one line for each");
}

enum err
packed_decode(struct packed *out, const uint8_t *file, size_t len, struct why *why)
{
	struct packed p = {0};
	uint64_t length = 0;

	if (len < PACKED_HEAD || memcmp(file, MAGIC, 4) != 0)
		return err_set(why, ERR_INVALID, "this is not a packed set");
	struct bytes_reader r = bytes_reader(file + 4, PACKED_HASH_AT - 4);
	uint16_t version = bytes_get_u16(&r), head = bytes_get_u16(&r);
	if (version != VERSION || head != PACKED_HEAD)
		return err_set(why, ERR_UNSUPPORTED, "byte 5: a packed set of version %u", version);
	if (!read_fields(&p, &r, &length))
		return err_set(why, ERR_INVALID, "the head of the packed set contradicts itself");
	enum err e = array_check(&p.array, len - PACKED_HEAD, why);
	if (e)
		return e;
	/* Targets are at most as many bytes as the file: products of two sizes below 2^37 and 2^32 fit. */
	if (p.target_width > len / 4 || packed_length(&p) != length || length != len)
		return err_set(why, ERR_INVALID, "the packed set has %zu bytes, its head says %llu",
		    len, (unsigned long long)length);
	if (p.names_bytes > 0)
		e = packed_names_check((const char *)file + packed_names_at(&p),
		    (size_t)p.names_bytes, p.classes, why);
	if (e)
		return e;
	p.array.behind = length - packed_labels_at(&p);
	*out = p;
	return ERR_OK;
}

static enum err
whole_numbers(int32_t **out, const struct packed *p, const uint8_t *at, uint32_t below,
    const char *what, struct why *why)
{
	size_t n = p->array.count;
	int32_t *to = malloc(n * sizeof(*to));
	struct bytes_reader r = bytes_reader(at, n * 4);

	if (!to)
		return err_set(why, ERR_NOMEM, "no memory for %zu labels", n);
	for (size_t i = 0; i < n; i++) {
		uint32_t v = bytes_get_u32(&r);
		if (v >= below) {
			free(to);
			return err_set(why, ERR_INVALID, "%s %zu is beyond the %u there are", what,
			    i + 1, below);
		}
		to[i] = (int32_t)v;
	}
	*out = to;
	return ERR_OK;
}

enum err
packed_labels(int32_t **out, const struct packed *p, const uint8_t *file, struct why *why)
{
	return whole_numbers(out, p, file + packed_labels_at(p), p->classes, "label", why);
}

enum err
packed_groups(int32_t **out, const struct packed *p, const uint8_t *file, struct why *why)
{
	if (p->groups == 0)
		return err_set(
		    why, ERR_INVALID, "the packed set tells no groups apart: pack it with --group");
	return whole_numbers(out, p, file + groups_at(p), p->groups, "group", why);
}

enum err
packed_targets(float **out, const struct packed *p, const uint8_t *file, struct why *why)
{
	size_t n = p->array.count * p->target_width;
	float *to = malloc(n * sizeof(*to));
	struct bytes_reader r = bytes_reader(file + packed_labels_at(p), n * 4);

	if (!to)
		return err_set(why, ERR_NOMEM, "no memory for %zu targets", n);
	for (size_t i = 0; i < n; i++) {
		to[i] = bytes_get_f32(&r);
		if (!isfinite(to[i])) {
			free(to);
			return err_set(why, ERR_NUMERIC, "target %zu is not finite", i + 1);
		}
	}
	*out = to;
	return ERR_OK;
}
