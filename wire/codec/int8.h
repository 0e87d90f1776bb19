#ifndef INT8_H
#define INT8_H
#include "codec.h"

/*
 * Codec "int8": blocks of 64 elements, each an f32 scale s = max|x| / 127 and then one signed byte per element,
 * q = floor(x / s + u) with u uniform in [0, 1) from the manifest's seed: stochastic rounding, so that errors of many
 * devices cancel in the mean (Alistarh et al., QSGD, 2017, with a scale per block). The value is s * q, rounded to f32
 * once. Bytes lie in -127..127, a block of zeros has scale +0, and the last block may be shorter.
 */
extern const struct codec codec_int8;

#endif
