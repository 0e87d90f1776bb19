/* An entry of the audit chain. What decodes must encode to the same bytes again. */
#include <stdlib.h>
#include <string.h>

#include "record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[RECORD_LEN];
	struct record r;
	struct why why;

	if (record_decode(&r, data, len, &why) == ERR_OK) {
		record_encode(again, &r);
		if (memcmp(again, data, RECORD_LEN) != 0)
			abort();
	}
	return 0;
}
