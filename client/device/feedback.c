#include "feedback.h"

enum err
feedback_init(
    struct feedback *f, struct rivulet *r, const struct codec_elements *delta, struct why *why)
{
	const struct work *w = &r->work;

	*f = (struct feedback){.residual = {.fd = -1}};
	f->both = (struct codec_elements_pair){*delta, kept_values(&f->residual), false};
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

struct codec_elements
feedback_values(const struct feedback *f)
{
	return f->residual.fd < 0 ? f->both.a : codec_elements_of(&f->both);
}

enum err
feedback_keep(
    const struct feedback *f, struct rivulet *r, const struct delta *made, struct why *why)
{
	const struct work *w = &r->work;
	struct delta_decoded decoded;

	if (delta_decoded(&decoded, made, 0))
		return err_set(why, ERR_INVALID, "the delta cannot be decoded");
	/* What the coordinator will make of the payload is taken from the delta. */
	const struct codec_elements_pair lost = {f->both.a, delta_decoded_values(&decoded), true};
	const struct codec_elements values = codec_elements_of(&lost);
	return residual_keep(
	    &r->residual, w->task.job, w->task.task, &values, w->table.elements, why);
}
