#ifndef ROTATED_H
#define ROTATED_H
#include "codec.h"

/*
 * Codecs "int4" and "sign": blocks of 4096 elements, rotated (rotate.h), then four bits or one bit per element beside one f32
 * scale. After the rotation elements are as good as Gaussian, so the levels are those that Lloyd and Max found best for that
 * distribution, and the scale S = |x|^2 / <Rx, levels> makes the decoded block unbiased over rotations (Vargaftik et al.,
 * DRIVE 2021, EDEN 2022). The last block is filled up with zeros to a power of two, at least 8; `check` counts the norm of all that this
 * filled block decodes to.
 */
extern const struct codec codec_rotated_int4;
extern const struct codec codec_rotated_sign;

#endif
