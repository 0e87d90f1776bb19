#include "protobuf.h"

#include <string.h>

#define VARINT_MAX 10

enum wire_type { VARINT = 0, BYTES = 2, FIXED32 = 5 };

static size_t
varint(uint8_t out[VARINT_MAX], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

static void
put(struct protobuf *p, const void *data, size_t len)
{
	if (!p->err)
		p->err = buf_append(p->out, data, len);
}

static void
put_varint(struct protobuf *p, uint64_t v)
{
	uint8_t raw[VARINT_MAX];

	put(p, raw, varint(raw, v));
}

static void
put_key(struct protobuf *p, uint32_t field, enum wire_type type)
{
	put_varint(p, (uint64_t)field << 3 | type);
}

void
protobuf_u64(struct protobuf *p, uint32_t field, uint64_t v)
{
	put_key(p, field, VARINT);
	put_varint(p, v);
}

void
protobuf_i64(struct protobuf *p, uint32_t field, int64_t v)
{
	protobuf_u64(p, field, (uint64_t)v);
}

void
protobuf_f32(struct protobuf *p, uint32_t field, float v)
{
	put_key(p, field, FIXED32);
	put(p, &v, sizeof(v));
}

void
protobuf_bytes(struct protobuf *p, uint32_t field, const void *data, size_t len)
{
	put_key(p, field, BYTES);
	put_varint(p, len);
	put(p, data, len);
}

void
protobuf_string(struct protobuf *p, uint32_t field, const char *text)
{
	protobuf_bytes(p, field, text, strlen(text));
}

void
protobuf_raw(struct protobuf *p, const void *data, size_t len)
{
	put(p, data, len);
}

size_t
protobuf_open(struct protobuf *p, uint32_t field)
{
	put_key(p, field, BYTES);
	return p->out->len;
}

/* The length goes before what is there already: that moves up. */
void
protobuf_close(struct protobuf *p, size_t at)
{
	uint8_t raw[VARINT_MAX];
	void *end;

	if (p->err)
		return;
	size_t len = p->out->len - at, n = varint(raw, len);
	p->err = buf_extend(p->out, n, &end);
	if (p->err)
		return;
	char *begin = p->out->data + at;
	memmove(begin + n, begin, len);
	memcpy(begin, raw, n);
}
