#include "idx.h"

static enum err
read_sizes(struct unpack *io, struct array *a, struct why *why)
{
	for (unsigned i = 0; i < a->dims; i++) {
		uint8_t b[4];
		enum err e = unpack_take(io, b, sizeof(b), why);
		if (e)
			return e;
		a->size[i] =
		    (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	}
	return ERR_OK;
}

static enum err
read_type(struct array *a, uint8_t code, struct why *why)
{
	static const struct {
		uint8_t code;
		enum dataset_type type;
	} types[] = {{0x08, DATASET_U8}, {0x09, DATASET_I8}, {0x0b, DATASET_I16},
	    {0x0c, DATASET_I32}, {0x0d, DATASET_F32}, {0x0e, DATASET_F64}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].code == code) {
			a->type = types[i].type;
			return ERR_OK;
		}
	return err_set(why, ERR_UNSUPPORTED, "byte 3: IDX knows no type 0x%02x", code);
}

enum err
idx_head(struct array *out, struct unpack *io, struct why *why)
{
	uint8_t magic[4];
	struct array a = {.big_endian = true};
	enum err e = unpack_take(io, magic, sizeof(magic), why);

	if (e)
		return e;
	if (magic[0] != 0 || magic[1] != 0)
		return err_set(why, ERR_INVALID, "this is not an IDX file");
	e = read_type(&a, magic[2], why);
	if (e)
		return e;
	if (magic[3] < 1 || magic[3] > ARRAY_DIMS_MAX)
		return err_set(
		    why, ERR_UNSUPPORTED, "byte 4: the IDX file has %u dimensions", magic[3]);
	a.dims = magic[3];
	a.at = sizeof(magic) + 4 * a.dims;
	e = read_sizes(io, &a, why);
	if (!e)
		e = array_check(&a, unpack_most(io), why);
	if (!e)
		*out = a;
	return e;
}

enum err
idx_labels(int32_t **labels, size_t *count, const void *file, size_t len, struct why *why)
{
	struct unpack *io;
	struct array a;
	enum err e = unpack_open(&io, file, len, why);

	if (e)
		return e;
	e = idx_head(&a, io, why);
	if (!e)
		e = array_labels(labels, &a, io, why);
	if (!e)
		*count = a.count;
	unpack_close(io);
	return e;
}

enum err
idx_images(struct dataset *out, const void *file, size_t len, const uint32_t *keep,
    size_t keep_count, struct why *why)
{
	struct unpack *io;
	struct array a;
	enum err e = unpack_check_keep(keep, keep_count, why);

	if (!e)
		e = unpack_open(&io, file, len, why);
	if (e)
		return e;
	e = idx_head(&a, io, why);
	if (!e && a.dims < 2)
		e = err_set(
		    why, ERR_INVALID, "IDX examples have 2 to 4 dimensions, this file has 1");
	if (!e)
		e = array_examples(out, &a, io, keep, keep_count, why);
	unpack_close(io);
	return e;
}
