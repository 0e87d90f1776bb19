/* NPY files, plain or gzip, as examples, labels and targets. */
#include <math.h>

#include "fuzz.h"
#include "net_spec.h"
#include "npy.h"

static void
check(const struct dataset *d)
{
	if (d->count == 0 || d->features == 0 || !d->bytes == !d->floats)
		abort();
	for (size_t i = 0; d->floats && i < d->count * d->features; i++)
		if (!isfinite(d->floats[i]))
			abort();
}

static enum err
open_at(struct unpack **io, struct array *a, const uint8_t *data, size_t len)
{
	struct why why;
	enum err e = unpack_open(io, data, len, &why);

	if (e)
		return e;
	e = npy_head(a, *io, &why);
	if (e)
		unpack_close(*io);
	return e;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct unpack *io;
	struct array a;
	struct dataset d;
	struct why why;
	int32_t *labels;
	float *targets;

	if (open_at(&io, &a, data, len))
		return 0;
	if (array_examples(&d, &a, io, NULL, 0, &why) == ERR_OK) {
		check(&d);
		dataset_deinit(&d);
	}
	unpack_close(io);
	if (open_at(&io, &a, data, len))
		abort();
	if (array_labels(&labels, &a, io, &why) == ERR_OK) {
		for (size_t i = 0; i < a.count; i++)
			if (labels[i] < 0 || labels[i] >= RECIPE_CLASSES_MAX)
				abort();
		free(labels);
	}
	unpack_close(io);
	if (open_at(&io, &a, data, len))
		abort();
	if (array_targets(&targets, &a, io, &why) == ERR_OK)
		free(targets);
	unpack_close(io);
	return 0;
}
