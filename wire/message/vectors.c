#include "vectors.h"

#include <string.h>

struct vectors
vectors_of(const struct manifest *m)
{
	return (struct vectors){.codec = codec_find(m->codec),
	    .params = {.elements = m->elements,
		.block = m->block,
		.seed = m->codec_seed,
		.payload = m->flags & MANIFEST_SECOND ? m->payload_bytes / 2 : m->payload_bytes},
	    .second = m->flags & MANIFEST_SECOND};
}

struct codec_params
vectors_params(const struct vectors *v, unsigned which)
{
	struct codec_params p = v->params;

	p.seed += which;
	return p;
}

uint64_t
vectors_times(uint64_t one, bool second)
{
	if (!second)
		return one;
	return one > UINT64_MAX / 2 ? UINT64_MAX : 2 * one;
}

uint64_t
vectors_bytes(const struct vectors *v)
{
	return vectors_times(v->codec->payload_bytes(v->params.elements), v->second);
}

enum err
vectors_check(const struct vectors *v, uint64_t at, const void *data, size_t len,
    double *sum_squares, uint8_t carry[64])
{
	const struct codec_params second = vectors_params(v, 1);
	uint64_t one = v->codec->payload_bytes(v->params.elements);
	double ignored = 0;
	size_t n = len;
	enum err e = ERR_OK;

	if (!v->second)
		return v->codec->check(&v->params, at, data, len, sum_squares, carry);
	if (at < one) {
		if (n > one - at)
			n = (size_t)(one - at);
		e = v->codec->check(&v->params, at, data, n, sum_squares, carry);
		if (e || at + n < one)
			return e;
		memset(carry, 0, 64);
	} else {
		n = 0;
	}
	if (n == len)
		return ERR_OK;
	at += n;
	return v->codec->check(
	    &second, at - one, (const uint8_t *)data + n, len - n, &ignored, carry);
}

struct part {
	const struct codec_source *whole;
	uint64_t begin;
};

static enum err
read_part(void *context, void *out, size_t len, uint64_t at)
{
	const struct part *part = context;

	return part->whole->read(part->whole->context, out, len, part->begin + at);
}

enum err
vectors_read(const struct vectors *v, unsigned which, const struct codec_source *source,
    uint64_t first, size_t count, float *out)
{
	const struct codec_params p = vectors_params(v, which);
	struct part part = {source, which > 0 ? v->codec->payload_bytes(p.elements) : 0};
	const struct codec_source of = {read_part, &part};

	return codec_read(v->codec, &p, &of, first, count, out);
}
