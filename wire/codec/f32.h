#ifndef F32_H
#define F32_H
#include "codec.h"

/* Elements as IEEE 754 binary32, little-endian, one after another. */
extern const struct codec codec_f32;

#endif
