#include "devicefile.h"

#include <string.h>

#include "bytes.h"

#define RESIDUAL_SPARE 16
#define HASHED 1u /* local tensors; the other kinds always were */

static const struct {
	char magic[4];
	size_t head, unit;
} layouts[] = {
    [DEVICEFILE_RESIDUAL] = {{'R', 'V', 'E', '1'}, 64, sizeof(float)},
    [DEVICEFILE_VARIATE] = {{'R', 'V', 'V', '1'}, 24, sizeof(float)},
    [DEVICEFILE_LOCAL] = {{'R', 'V', 'L', '1'}, 16, 1},
};

#define KINDS (sizeof(layouts) / sizeof(*layouts))

size_t
devicefile_head(enum devicefile_kind kind)
{
	return layouts[kind].head;
}

uint64_t
devicefile_bytes(enum devicefile_kind kind, uint64_t count)
{
	uint64_t around = layouts[kind].head + DEVICEFILE_HASH;

	if (count > (UINT64_MAX - around) / layouts[kind].unit)
		return 0;
	return around + count * layouts[kind].unit;
}

void
devicefile_encode(const struct devicefile *in, uint8_t *head)
{
	struct bytes_writer w = bytes_writer(head, devicefile_head(in->kind));

	bytes_put(&w, layouts[in->kind].magic, 4);
	bytes_put_u32(&w, in->kind == DEVICEFILE_LOCAL ? HASHED : 0);
	if (in->kind == DEVICEFILE_VARIATE)
		bytes_put_u64(&w, in->round);
	bytes_put_u64(&w, in->count);
	if (in->kind == DEVICEFILE_RESIDUAL) {
		bytes_put(&w, in->job, sizeof(in->job));
		bytes_put(&w, in->task, sizeof(in->task));
		bytes_put_zeros(&w, RESIDUAL_SPARE);
	}
}

/* KINDS: none. */
static size_t
kind_of(struct bytes_reader *r)
{
	char magic[4] = {0};
	size_t kind = 0;

	bytes_get(r, magic, sizeof(magic));
	while (kind < KINDS && memcmp(magic, layouts[kind].magic, sizeof(magic)) != 0)
		kind++;
	return kind;
}

static bool
get_head(struct devicefile *out, struct bytes_reader *r)
{
	uint32_t flags = bytes_get_u32(r);
	bool zeros = true;

	out->unhashed = out->kind == DEVICEFILE_LOCAL && flags == 0;
	if (out->kind == DEVICEFILE_VARIATE)
		out->round = bytes_get_u64(r);
	out->count = bytes_get_u64(r);
	if (out->kind == DEVICEFILE_RESIDUAL) {
		bytes_get(r, out->job, sizeof(out->job));
		bytes_get(r, out->task, sizeof(out->task));
		zeros = bytes_get_zeros(r, RESIDUAL_SPARE);
	}
	return !r->bad && zeros &&
	    (flags == 0 || (out->kind == DEVICEFILE_LOCAL && flags == HASHED));
}

enum err
devicefile_decode(struct devicefile *out, const void *head, uint64_t len, struct why *why)
{
	struct bytes_reader r =
	    bytes_reader(head, len < DEVICEFILE_HEAD_MAX ? (size_t)len : DEVICEFILE_HEAD_MAX);
	size_t kind = kind_of(&r);

	*out = (struct devicefile){.kind = (enum devicefile_kind)kind};
	if (kind == KINDS)
		return err_set(why, ERR_CORRUPT, "the magic is none of a device's files");
	if (!get_head(out, &r))
		return err_set(
		    why, ERR_CORRUPT, "the head is cut short, or reserved bytes are set");
	uint64_t whole = devicefile_bytes(out->kind, out->count);
	size_t tail = out->unhashed ? 0 : DEVICEFILE_HASH;
	if (whole == 0 || len != whole - DEVICEFILE_HASH + tail)
		return err_set(why, ERR_CORRUPT,
		    "it has %llu bytes, which is not what its head says", (unsigned long long)len);
	return ERR_OK;
}
