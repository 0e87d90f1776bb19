/* A difference as a device gets it. A head that decodes must encode to the same bytes again; what its payload decodes to is
 * finite. */
#include <math.h>

#include "difference.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static float out[DIFFERENCE_TILE];
	uint8_t again[DIFFERENCE_HEAD];
	struct difference d;
	struct why why;

	if (difference_decode(&d, data, len, &why))
		return 0;
	difference_encode(again, &d);
	if (memcmp(again, data, DIFFERENCE_HEAD) != 0)
		abort();
	data += DIFFERENCE_HEAD;
	len -= DIFFERENCE_HEAD;
	for (uint64_t n = 0; n * DIFFERENCE_TILE < d.elements; n++) {
		struct difference_tile t = difference_tile(&d, n);
		if (t.at + t.len > len)
			break;
		if (difference_tile_decode(&d, &t, data + t.at, out))
			continue;
		for (size_t i = 0; i < t.count; i++)
			if (!isfinite(out[i]))
				abort();
	}
	return 0;
}
