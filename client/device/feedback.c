#include "feedback.h"

#define TILE 4096 /* elements worked on at a time */

enum err
feedback_init(
    struct feedback *f, struct rivulet *r, const struct codec_values *delta, struct why *why)
{
	const struct work *w = &r->work;

	*f = (struct feedback){delta, {.fd = -1}};
	enum err e = residual_open(&r->residual, w->task.job, w->table.elements, &f->residual, why);
	if (e == ERR_CORRUPT)
		events_emit(&r->events, EVENTS_ERROR, "residual.lost",
		    EVENTS_PAIRS(EVENTS_S("job", w->task.job), EVENTS_S("reason", why->text)));
	return e == ERR_CORRUPT || e == ERR_NOTFOUND ? ERR_OK : e;
}

void
feedback_deinit(struct feedback *f)
{
	kept_close(&f->residual);
}

static enum err
read_sum(void *context, uint64_t first, size_t count, float *out)
{
	const struct feedback *f = context;
	const struct codec_values residual = kept_values(&f->residual);
	float part[TILE];
	enum err e = f->delta->read(f->delta->context, first, count, out);

	while (!e && f->residual.fd >= 0 && count > 0) {
		size_t n = count < TILE ? count : TILE;
		e = residual.read(residual.context, first, n, part);
		for (size_t i = 0; !e && i < n; i++)
			out[i] += part[i];
		first += n;
		out += n;
		count -= n;
	}
	return e;
}

struct codec_values
feedback_values(const struct feedback *f)
{
	return (struct codec_values){read_sum, (void *)(uintptr_t)f};
}

/* What the coordinator will make of the payload is taken from the delta. */
struct lost {
	const struct codec_values *delta;
	struct codec_values decoded;
};

static enum err
read_lost(void *context, uint64_t first, size_t count, float *out)
{
	const struct lost *lost = context;
	float part[TILE];
	enum err e = lost->delta->read(lost->delta->context, first, count, out);

	while (!e && count > 0) {
		size_t n = count < TILE ? count : TILE;
		e = lost->decoded.read(lost->decoded.context, first, n, part);
		for (size_t i = 0; !e && i < n; i++)
			out[i] -= part[i];
		first += n;
		out += n;
		count -= n;
	}
	return e;
}

enum err
feedback_keep(
    const struct feedback *f, struct rivulet *r, const struct delta *made, struct why *why)
{
	const struct work *w = &r->work;
	struct delta_decoded decoded;

	if (delta_decoded(&decoded, made, 0))
		return err_set(why, ERR_INVALID, "the delta cannot be decoded");
	struct lost lost = {f->delta, delta_decoded_values(&decoded)};
	const struct codec_values values = {read_lost, &lost};
	return residual_keep(
	    &r->residual, w->task.job, w->task.task, &values, w->table.elements, why);
}
