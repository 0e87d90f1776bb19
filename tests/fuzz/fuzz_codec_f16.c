#define CODEC CODEC_F16
#include "fuzz_codec.h"
