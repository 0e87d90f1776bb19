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

/* Widens a finite f16. Its exponent and fraction are moved to where an f32 has them; the exponent is then too small by 112, which one exact
 * product corrects, for subnormal numbers too. */
static inline float
codec_half_from_f16(uint16_t h)
{
	float magnitude = codec_half_float((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;

	return codec_half_float(codec_half_bits(magnitude) | (uint32_t)(h & 0x8000) << 16);
}

/* Widens a bf16, exactly. */
static inline float
codec_half_from_bf16(uint16_t h)
{
	return codec_half_float((uint32_t)h << 16);
}

/* Rounds to bf16, to nearest, ties to even. A finite x may round to infinity. */
static inline uint16_t
codec_half_to_bf16(float x)
{
	uint32_t bits = codec_half_bits(x);

	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
