/* Packed data sets. */
#include <math.h>

#include "fuzz.h"
#include "packed.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct packed p;
	struct why why;
	int32_t *numbers;
	float *targets;
	uint8_t head[PACKED_HASH_AT];

	if (packed_decode(&p, data, len, &why))
		return 0;
	if (packed_length(&p) != len)
		abort();
	packed_encode(head, &p);
	if (memcmp(head, data, sizeof(head)) != 0)
		abort();
	if (p.classes && packed_labels(&numbers, &p, data, &why) == ERR_OK) {
		for (size_t i = 0; i < p.array.count; i++)
			if (numbers[i] < 0 || (uint32_t)numbers[i] >= p.classes)
				abort();
		free(numbers);
	}
	if (!p.classes && packed_targets(&targets, &p, data, &why) == ERR_OK)
		free(targets);
	if (packed_groups(&numbers, &p, data, &why) == ERR_OK)
		free(numbers);
	return 0;
}
