#ifndef CODEC_CUT_H
#define CODEC_CUT_H
#include "codec.h"
#include "flush.h"
#include "prng.h"

/* Checks the payload in pieces of at most `most` bytes, each from a place of its own with odd alignment. */
static inline enum err
codec_cut(const struct codec *c, const struct codec_params *p, const uint8_t *payload, size_t len,
    size_t most, struct prng *r, double *sum)
{
	uint8_t carry[64] = {0};

	*sum = 0;
	for (size_t at = 0; at < len;) {
		size_t n = 1 + (size_t)prng_below(r, most);
		if (n > len - at)
			n = len - at;
		struct flush f = flush_new(payload + at, n);
		enum err e = c->check(p, at, f.data, n, sum, carry);
		flush_free(&f);
		if (e)
			return e;
		at += n;
	}
	return c->check(p, len, payload, 0, sum, carry);
}

#endif
