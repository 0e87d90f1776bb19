#include "feedback.h"

#include <stdlib.h>
#include <string.h>

#include "vectors.h"

/* What the coordinator will make of the payload. */
static enum err
decode(const struct delta *d, float *out, struct why *why)
{
	struct codec_memory memory = {d->payload, d->payload_len};
	const struct codec_source source = {codec_memory_read, &memory};
	struct manifest m;

	enum err e = manifest_decode(&m, d->manifest, MANIFEST_LEN, why);
	if (e)
		return e;
	const struct vectors v = vectors_of(&m);
	e = vectors_read(&v, 0, &source, 0, (size_t)m.elements, out);
	return e ? err_set(why, e, "the delta cannot be decoded") : ERR_OK;
}

/* A residual that is damaged is gone; the job goes on without it. */
static enum err
add_residual(struct rivulet *r, float *sum, uint64_t elements, struct why *why)
{
	enum err e = residual_add(&r->residual, r->work.task.job, sum, elements, why);

	if (e != ERR_CORRUPT)
		return e;
	events_emit(&r->events, EVENTS_ERROR, "residual.lost",
	    EVENTS_PAIRS(EVENTS_S("job", r->work.task.job), EVENTS_S("reason", why->text)));
	return ERR_OK;
}

enum err
feedback_make(struct delta *out, struct rivulet *r, const struct delta_facts *facts, float *values,
    struct why *why)
{
	uint64_t elements = r->work.table.elements;
	float *sum = malloc((size_t)elements * sizeof(*sum));

	if (!sum)
		return err_set(why, ERR_NOMEM, "no memory for the residual");
	memcpy(sum, values, (size_t)elements * sizeof(*sum));
	enum err e = add_residual(r, sum, elements, why);
	if (!e)
		e = delta_make(out, facts, sum, NULL, elements, session_key(r->session), why);
	if (!e)
		e = decode(out, sum, why);
	for (uint64_t i = 0; !e && i < elements; i++)
		values[i] -= sum[i];
	if (!e)
		e = residual_keep(
		    &r->residual, r->work.task.job, r->work.task.task, values, elements, why);
	free(sum);
	return e;
}
