#ifndef CODEC_HALF_H
#define CODEC_HALF_H
#include "codec.h"

/* Codecs "f16" (IEEE 754 binary16) and "bf16" (the upper half of an f32): two bytes per element, rounded to nearest, ties to
 * even. Encoding gives ERR_NUMERIC for what rounds to infinity: in f16 everything from 65,520 up. */
extern const struct codec codec_half_f16;
extern const struct codec codec_half_bf16;

#endif
