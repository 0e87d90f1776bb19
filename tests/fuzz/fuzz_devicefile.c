/* What a device keeps of a job on its disk. What decodes must encode to the same bytes again. */

#include "devicefile.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct devicefile file;
	struct why why = {""};

	if (devicefile_decode(&file, data, len, &why)) {
		if (!why.text[0])
			abort();
		return 0;
	}
	uint64_t whole = devicefile_bytes(file.kind, file.count);
	size_t head = devicefile_head(file.kind);
	if (whole != len + (file.unhashed ? DEVICEFILE_HASH : 0) || head > DEVICEFILE_HEAD_MAX)
		abort();
	uint8_t again[DEVICEFILE_HEAD_MAX] = {0};
	devicefile_encode(&file, again);
	if (!file.unhashed && memcmp(again, data, head) != 0)
		abort();
	if (devicefile_decode(&file, again, whole, &why) || file.unhashed)
		abort();
	return 0;
}
