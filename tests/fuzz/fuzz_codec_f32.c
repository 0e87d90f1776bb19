#define CODEC CODEC_F32
#include "fuzz_codec.h"
