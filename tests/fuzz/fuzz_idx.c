/* IDX files, plain or gzip: the whole, and a share of them. */

#include "fuzz.h"
#include "idx.h"
#include "net_spec.h"

static size_t
row_bytes(const struct dataset *d)
{
	return d->features * (d->bytes ? 1 : sizeof(*d->floats));
}

static const uint8_t *
row(const struct dataset *d, size_t i)
{
	const uint8_t *values = d->bytes ? d->bytes : (const uint8_t *)d->floats;

	return values + i * row_bytes(d);
}

/* Examples 0 and `last` alone must equal those of the whole. */
static void
check_share(const struct dataset *whole, const uint8_t *data, size_t len)
{
	uint32_t keep[2] = {0, (uint32_t)whole->count - 1};
	size_t n = whole->count > 1 ? 2 : 1;
	struct dataset share;
	struct why why;

	if (idx_images(&share, data, len, keep, n, &why))
		abort();
	for (size_t i = 0; i < n; i++)
		if (!share.bytes != !whole->bytes ||
		    memcmp(row(&share, i), row(whole, keep[i]), row_bytes(whole)) != 0)
			abort();
	dataset_deinit(&share);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dataset d;
	struct why why;
	int32_t *labels;
	size_t n;

	if (idx_labels(&labels, &n, data, len, &why) == ERR_OK) {
		for (size_t i = 0; i < n; i++)
			if (labels[i] < 0 || labels[i] >= RECIPE_CLASSES_MAX)
				abort();
		free(labels);
	}
	if (idx_images(&d, data, len, NULL, 0, &why) == ERR_OK) {
		check_share(&d, data, len);
		dataset_deinit(&d);
	}
	return 0;
}
