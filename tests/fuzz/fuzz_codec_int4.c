#define CODEC CODEC_INT4
#include "fuzz_codec.h"
