#include "codec_elements.h"

#include <string.h>

#define PART 4096 /* elements of b at a time */

static enum err
read_memory(void *values, uint64_t first, size_t count, float *out)
{
	memcpy(out, (const float *)values + first, count * sizeof(*out));
	return ERR_OK;
}

struct codec_elements
codec_elements_in(const float *values)
{
	return (struct codec_elements){read_memory, (void *)(uintptr_t)values};
}

static void
add(float *out, const float *more, size_t n, bool minus)
{
	for (size_t i = 0; minus && i < n; i++)
		out[i] -= more[i];
	for (size_t i = 0; !minus && i < n; i++)
		out[i] += more[i];
}

static enum err
read_pair(void *context, uint64_t first, size_t count, float *out)
{
	const struct codec_elements_pair *p = context;
	float part[PART];
	enum err e = ERR_OK;

	if (p->a.read)
		e = p->a.read(p->a.context, first, count, out);
	else
		memset(out, 0, count * sizeof(*out));
	while (!e && count > 0) {
		size_t n = count < PART ? count : PART;
		e = p->b.read(p->b.context, first, n, part);
		if (!e)
			add(out, part, n, p->minus);
		first += n;
		out += n;
		count -= n;
	}
	return e;
}

struct codec_elements
codec_elements_of(const struct codec_elements_pair *pair)
{
	return (struct codec_elements){read_pair, (void *)(uintptr_t)pair};
}
