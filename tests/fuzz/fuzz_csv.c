/* CSV files, plain or gzip. The first byte chooses how to read, the rest is the file. */

#include <math.h>

#include "csv.h"
#include "fuzz.h"

static void
check(const struct dataset *d, const int32_t *labels, size_t n)
{
	if (d->count == 0 || d->count != n || d->features == 0 || !d->labels == !d->targets)
		abort();
	for (size_t i = 0; i < d->count * d->features; i++)
		if (!isfinite(d->floats[i]))
			abort();
	for (size_t i = 0; d->labels && i < n; i++)
		if (d->labels[i] != labels[i] || (size_t)d->labels[i] >= d->classes)
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const columns[] = {NULL, "last", "0", "label"};
	struct csv_form how = {.max_rows = 10000};
	static const uint32_t first;
	struct dataset d;
	struct why why;
	int32_t *labels = NULL;
	size_t n = 0;

	if (len < 1)
		return 0;
	how.label = columns[data[0] & 3];
	how.regression = data[0] & 4;
	how.missing = data[0] & 8 ? "skip" : data[0] & 16 ? "0.5" : NULL;
	how.columns = data[0] & 32 ? "1, a, 0" : NULL;
	how.classes = data[0] & 64 ? "no, yes" : NULL;
	how.group = data[0] & 128 ? "0" : NULL;
	data++;
	len--;
	enum err e = csv_labels(&labels, &n, data, len, &how, &why);
	if (csv_read(&d, data, len, &how, NULL, 0, &why) == ERR_OK) {
		if (e)
			abort();
		check(&d, labels, n);
		dataset_deinit(&d);
	}
	if (csv_read(&d, data, len, &how, &first, 1, &why) == ERR_OK)
		dataset_deinit(&d);
	free(labels);
	labels = NULL;
	if (csv_groups(&labels, &n, data, len, &how, &why) == ERR_OK && n == 0)
		abort();
	free(labels);
	return 0;
}
