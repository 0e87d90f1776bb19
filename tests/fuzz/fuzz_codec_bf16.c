#define CODEC CODEC_BF16
#include "fuzz_codec.h"
