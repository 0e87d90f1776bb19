/* A payload of codec sparse: two bytes say where it is cut, two how many elements there are, two the most entries; the rest is the
 * payload. Cuts must change neither the verdict nor the sum; what was accepted decodes in any pieces to the same finite values,
 * and these encode to the same bytes. What was refused may be read, too, without harm. */
#include <math.h>

#include "fuzz.h"
#include "sparse.h"

#define HEAD 6
#define ELEMENTS 65535

static const struct codec *const c = &codec_sparse;

static enum err
check_cut(struct codec_params p, const uint8_t *data, size_t step, double *sum)
{
	uint8_t carry[64] = {0};
	enum err e = ERR_OK;

	p.table = malloc(codec_table_bytes(c, p.elements) + 1);
	*sum = 0;
	for (size_t at = 0; at < p.payload && !e; at += step) {
		size_t n = p.payload - at < step ? (size_t)(p.payload - at) : step;
		e = c->check(&p, at, data + at, n, sum, carry);
	}
	free(p.table);
	return e;
}

static void
accepted(struct codec_params p, const struct codec_source *source, const uint8_t *data)
{
	static float whole[ELEMENTS], part[ELEMENTS];
	static uint8_t again[4 * ELEMENTS];
	size_t n = (size_t)p.elements, step = n / 3 + 1;

	if (codec_read(c, &p, source, 0, n, whole) != ERR_OK)
		abort();
	for (size_t first = 0; first < n; first += step)
		if (codec_read(c, &p, source, first, n - first < step ? n - first : step,
			part + first) != ERR_OK)
			abort();
	for (size_t i = 0; i < n; i++)
		if (!isfinite(whole[i]))
			abort();
	uint64_t len = 0;
	if (memcmp(part, whole, n * sizeof(float)) != 0 ||
	    c->encode(again, &len, whole, &p) != ERR_OK || len != p.payload ||
	    memcmp(again, data, (size_t)len) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static float out[ELEMENTS];
	double whole, cut;

	if (len <= HEAD)
		return 0;
	size_t step = 1 + (data[0] | (size_t)data[1] << 8);
	struct codec_params p = {.elements = 1 + (data[2] | (uint64_t)data[3] << 8) % ELEMENTS,
	    .block = c->block,
	    .entries = data[4] | (uint64_t)data[5] << 8,
	    .payload = len - HEAD};
	data += HEAD;
	struct codec_memory memory = {data, p.payload};
	const struct codec_source source = {codec_memory_read, &memory};
	enum err e = check_cut(p, data, (size_t)p.payload, &whole);
	enum err f = check_cut(p, data, step, &cut);
	if (e != f || (e == ERR_OK && memcmp(&whole, &cut, sizeof(cut)) != 0))
		abort();
	if (e == ERR_OK)
		accepted(p, &source, data);
	else
		(void)!codec_read(c, &p, &source, 0, (size_t)p.elements, out);
	return 0;
}
