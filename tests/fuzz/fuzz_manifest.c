/* Manifest and receipt. What decodes must encode to the same bytes again. */

#include <stdbool.h>

#include "fuzz.h"
#include <stdbool.h>

#include "manifest.h"
#include "task_kind.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[MANIFEST_LEN];
	struct manifest m;
	struct receipt r;
	struct why why;

	if (manifest_decode(&m, data, len, &why) == ERR_OK) {
		manifest_encode(again, &m);
		bool whole = manifest_kind(&m) == TASK_EVALUATE
		    ? m.payload_bytes == 0
		    : manifest_body_bytes(m.payload_bytes) > m.payload_bytes;
		if (memcmp(again, data, MANIFEST_LEN) != 0 || !whole)
			abort();
	}
	if (manifest_receipt_decode(&r, data, len, &why) == ERR_OK) {
		manifest_receipt_encode(again, &r);
		if (memcmp(again, data, RECEIPT_LEN) != 0)
			abort();
	}
	return 0;
}
