#define CODEC CODEC_INT8
#include "fuzz_codec.h"
