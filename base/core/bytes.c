#include "bytes.h"

#include <stdlib.h>
#include <string.h>

struct bytes_reader
bytes_reader(const void *data, size_t len)
{
	/* Advancing a null pointer by zero is undefined, so nothing is given an address of its own. */
	return (struct bytes_reader){data ? data : (const void *)"", len, false};
}

/* Returns the next len bytes, or NULL once the reader is bad. */
static const uint8_t *
take(struct bytes_reader *r, size_t len)
{
	if (r->bad || len > r->left) {
		r->bad = true;
		return NULL;
	}
	const uint8_t *at = r->p;
	r->p += len;
	r->left -= len;
	return at;
}

static uint64_t
get_le(struct bytes_reader *r, size_t len)
{
	const uint8_t *at = take(r, len);
	uint64_t v = 0;

	for (size_t i = len; at && i-- > 0;)
		v = v << 8 | at[i];
	return v;
}

uint16_t
bytes_get_u16(struct bytes_reader *r)
{
	return (uint16_t)get_le(r, 2);
}

uint32_t
bytes_get_u32(struct bytes_reader *r)
{
	return (uint32_t)get_le(r, 4);
}

uint64_t
bytes_get_u64(struct bytes_reader *r)
{
	return get_le(r, 8);
}

float
bytes_get_f32(struct bytes_reader *r)
{
	uint32_t bits = bytes_get_u32(r);
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

void
bytes_get(struct bytes_reader *r, void *out, size_t len)
{
	const uint8_t *at = take(r, len);

	if (at && len > 0)
		memcpy(out, at, len);
	else if (len > 0)
		memset(out, 0, len);
}

bool
bytes_get_zeros(struct bytes_reader *r, size_t len)
{
	const uint8_t *at = take(r, len);
	uint8_t any = 0;

	for (size_t i = 0; at && i < len; i++)
		any |= at[i];
	return at && any == 0;
}

struct bytes_writer
bytes_writer(void *data, size_t len)
{
	return (struct bytes_writer){data, len, false};
}

static uint8_t *
room(struct bytes_writer *w, size_t len)
{
	if (w->bad || len > w->left) {
		w->bad = true;
		return NULL;
	}
	uint8_t *at = w->p;
	w->p += len;
	w->left -= len;
	return at;
}

static void
put_le(struct bytes_writer *w, uint64_t v, size_t len)
{
	uint8_t *at = room(w, len);

	for (size_t i = 0; at && i < len; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

void
bytes_put_u16(struct bytes_writer *w, uint16_t v)
{
	put_le(w, v, 2);
}

void
bytes_put_u32(struct bytes_writer *w, uint32_t v)
{
	put_le(w, v, 4);
}

void
bytes_put_u64(struct bytes_writer *w, uint64_t v)
{
	put_le(w, v, 8);
}

void
bytes_put_f32(struct bytes_writer *w, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	bytes_put_u32(w, bits);
}

void
bytes_put(struct bytes_writer *w, const void *data, size_t len)
{
	uint8_t *at = room(w, len);

	if (at && len > 0)
		memcpy(at, data, len);
}

void
bytes_put_zeros(struct bytes_writer *w, size_t len)
{
	uint8_t *at = room(w, len);

	if (at)
		memset(at, 0, len);
}

size_t
bytes_place(const void *items, size_t count, size_t size, const void *key, size_t len)
{
	size_t from = 0, to = count;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (memcmp((const uint8_t *)items + mid * size, key, len) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

void *
bytes_grow(void *items, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return items;
	size_t more = *room > 0 ? *room * 2 : 16;
	void *grown = realloc(items, more * size);
	if (grown)
		*room = more;
	return grown;
}

size_t
bytes_trim(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	while (end > *at && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return (size_t)(end - *at);
}
