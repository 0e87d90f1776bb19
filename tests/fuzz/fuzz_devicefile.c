/* What a device keeps of a job on its disk. What decodes must encode to the same bytes again. */

#include "devicefile.h"
#include "fuzz.h"

/* One that a fuzzer can hit. */
static void
sum(uint8_t out[DEVICEFILE_HASH], const void *data, size_t len)
{
	const uint8_t *bytes = data;

	memset(out, 0, DEVICEFILE_HASH);
	for (size_t i = 0; i < len; i++)
		out[0] = (uint8_t)(out[0] + bytes[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct devicefile file;
	struct why why = {""};

	if (devicefile_decode(&file, data, len, sum, &why)) {
		if (!why.text[0])
			abort();
		return 0;
	}
	size_t whole = devicefile_bytes(file.kind, file.count);
	if (whole != len + (file.unhashed ? DEVICEFILE_HASH : 0))
		abort();
	uint8_t *again = calloc(1, whole);
	if (!again)
		return 0;
	memcpy(again, data, whole - DEVICEFILE_HASH);
	devicefile_encode(&file, again, sum);
	if (!file.unhashed && memcmp(again, data, len) != 0)
		abort();
	if (devicefile_decode(&file, again, whole, sum, &why) || file.unhashed)
		abort();
	free(again);
	return 0;
}
