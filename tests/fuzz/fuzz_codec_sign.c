#define CODEC CODEC_SIGN
#include "codec.h"
#include "fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return fuzz_codec(data, len);
}
