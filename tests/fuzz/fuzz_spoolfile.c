/* The head of a spool file. What decodes must encode to the same bytes again. */

#include "fuzz.h"
#include "spoolfile.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[SPOOLFILE_HEAD];
	struct spoolfile s;
	struct why why;

	if (spoolfile_decode(&s, data, len, &why) == ERR_OK) {
		spoolfile_encode(again, &s);
		if (memcmp(again, data, SPOOLFILE_HEAD) != 0)
			abort();
	}
	return 0;
}
