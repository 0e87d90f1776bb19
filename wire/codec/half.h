#ifndef HALF_H
#define HALF_H
#include <string.h>

#include "codec.h"

/* Codecs "f16" (IEEE 754 binary16) and "bf16" (the upper half of an f32): two bytes per element, rounded to nearest, ties to
 * even. Encoding gives ERR_NUMERIC for what rounds to infinity: in f16 everything from 65,520 up. */
extern const struct codec codec_half_f16;
extern const struct codec codec_half_bf16;

/* The bits of an f32, and back. */
static inline float
codec_half_float(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline uint32_t
codec_half_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* One bf16. What is finite may round to infinity. */
static inline float
codec_half_from_bf16(uint16_t h)
{
	return codec_half_float((uint32_t)h << 16);
}

static inline uint16_t
codec_half_to_bf16(float x)
{
	uint32_t bits = codec_half_bits(x);

	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
