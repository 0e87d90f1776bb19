#include "devicefile.h"

#include <string.h>

#include "bytes.h"

#define RESIDUAL_SPARE 16
#define HASHED 1u /* local tensors; the other kinds always were */

static const struct {
	char magic[4];
	size_t head, unit;
	const char *name;
} layouts[] = {
    [DEVICEFILE_RESIDUAL] = {{'R', 'V', 'E', '1'}, 64, sizeof(float), "residual"},
    [DEVICEFILE_VARIATE] = {{'R', 'V', 'V', '1'}, 24, sizeof(float), "variate"},
    [DEVICEFILE_LOCAL] = {{'R', 'V', 'L', '1'}, 16, 1, "local"},
    [DEVICEFILE_KEPT] = {{'R', 'V', 'K', '1'}, 192, 1, "kept"},
};

#define KINDS (sizeof(layouts) / sizeof(*layouts))

size_t
devicefile_head(enum devicefile_kind kind)
{
	return layouts[kind].head;
}

const char *
devicefile_name(enum devicefile_kind kind)
{
	return layouts[kind].name;
}

uint64_t
devicefile_bytes(enum devicefile_kind kind, uint64_t count)
{
	uint64_t around = layouts[kind].head + DEVICEFILE_HASH;

	if (count > (UINT64_MAX - around) / layouts[kind].unit)
		return 0;
	return around + count * layouts[kind].unit;
}

static void
put_kept(struct bytes_writer *w, const struct devicefile *in)
{
	bytes_put(w, in->job, sizeof(in->job));
	bytes_put(w, in->task, sizeof(in->task));
	bytes_put_u64(w, in->round);
	bytes_put_u64(w, in->serial);
	bytes_put(w, in->base, sizeof(in->base));
	bytes_put(w, in->table, sizeof(in->table));
	bytes_put(w, in->trainer, sizeof(in->trainer));
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
	if (in->kind == DEVICEFILE_KEPT)
		put_kept(&w, in);
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

/* A name, and zeros behind it. */
static bool
is_name(const char *name)
{
	size_t len = strnlen(name, DEVICEFILE_NAME_MAX);

	for (size_t i = len; i < DEVICEFILE_NAME_MAX; i++)
		if (name[i] != '\0')
			return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return len > 0 && len < DEVICEFILE_NAME_MAX;
}

static bool
get_kept(struct devicefile *out, struct bytes_reader *r)
{
	bytes_get(r, out->job, sizeof(out->job));
	bytes_get(r, out->task, sizeof(out->task));
	out->round = bytes_get_u64(r);
	out->serial = bytes_get_u64(r);
	bytes_get(r, out->base, sizeof(out->base));
	bytes_get(r, out->table, sizeof(out->table));
	bytes_get(r, out->trainer, sizeof(out->trainer));
	return !r->bad && is_name(out->trainer);
}

static bool
get_head(struct devicefile *out, struct bytes_reader *r)
{
	uint32_t flags = bytes_get_u32(r);
	bool good = true;

	out->unhashed = out->kind == DEVICEFILE_LOCAL && flags == 0;
	if (out->kind == DEVICEFILE_VARIATE)
		out->round = bytes_get_u64(r);
	out->count = bytes_get_u64(r);
	if (out->kind == DEVICEFILE_RESIDUAL) {
		bytes_get(r, out->job, sizeof(out->job));
		bytes_get(r, out->task, sizeof(out->task));
		good = bytes_get_zeros(r, RESIDUAL_SPARE);
	}
	if (out->kind == DEVICEFILE_KEPT)
		good = get_kept(out, r);
	return !r->bad && good &&
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
		return err_set(why, ERR_CORRUPT,
		    "the head is cut short, or has bytes that are none of its fields");
	uint64_t whole = devicefile_bytes(out->kind, out->count);
	size_t tail = out->unhashed ? 0 : DEVICEFILE_HASH;
	if (whole == 0 || len != whole - DEVICEFILE_HASH + tail)
		return err_set(why, ERR_CORRUPT,
		    "it has %llu bytes, which is not what its head says", (unsigned long long)len);
	return ERR_OK;
}
