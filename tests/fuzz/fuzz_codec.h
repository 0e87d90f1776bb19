#ifndef FUZZ_CODEC_H
#define FUZZ_CODEC_H
/* A codec's payload: the first two bytes say where it is cut, the rest is the payload. Cuts must change neither the verdict
 * nor the sum, and what was accepted decodes to finite values. A target defines CODEC, an id, and is this. */
#include <math.h>

#include "codec.h"
#include "fuzz.h"

static enum err
check_cut(const struct codec_params *p, const uint8_t *data, size_t len, size_t step, double *sum)
{
	const struct codec *c = codec_find(CODEC);
	uint8_t carry[64] = {0};
	enum err e = ERR_OK;

	*sum = 0;
	for (size_t at = 0; at < len && !e; at += step)
		e = c->check(p, at, data + at, len - at < step ? len - at : step, sum, carry);
	return e;
}

static void
decode(const struct codec_params *p, const uint8_t *data)
{
	const struct codec *c = codec_find(CODEC);
	float out[7];
	uint64_t at;
	size_t bytes;

	for (uint64_t first = 0; first < p->elements; first += 7) {
		size_t n = p->elements - first < 7 ? (size_t)(p->elements - first) : 7;
		c->range(p, first, n, &at, &bytes);
		if (c->decode(p, first, n, data + at, bytes, out))
			abort();
		for (size_t i = 0; i < n; i++)
			if (!isfinite(out[i]))
				abort();
	}
}

/* The elements of a payload of len bytes; false if no number of them gives it. */
static bool
elements_of(size_t len, uint64_t *out)
{
	const struct codec *c = codec_find(CODEC);

	for (uint64_t n = 0; n <= len; n++)
		if (c->payload_bytes(n) == len) {
			*out = n;
			return true;
		}
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct codec_params p = {.block = codec_find(CODEC)->block};
	double whole, cut;

	if (len < 2 || !elements_of(len - 2, &p.elements))
		return 0;
	size_t step = 1 + (data[0] | (size_t)data[1] << 8);
	data += 2;
	len -= 2;
	enum err e = check_cut(&p, data, len, len > 0 ? len : 1, &whole);
	enum err f = check_cut(&p, data, len, step, &cut);
	if (e != f || (e == ERR_OK && memcmp(&whole, &cut, sizeof(cut)) != 0))
		abort();
	if (e == ERR_OK)
		decode(&p, data);
	return 0;
}

#endif
