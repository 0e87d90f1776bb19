#define CODEC CODEC_SIGN
#include "fuzz_codec.h"
