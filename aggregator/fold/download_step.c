#include "download_step.h"

#include <string.h>

#include "job.h"
#include "prng.h"
#include "rule.h"
#include "vec.h"

_Static_assert(RULE_TILE == DIFFERENCE_TILE, "a tile of the fold is a tile of the difference");

uint64_t
download_step_seed(uint64_t job_seed, uint64_t round)
{
	struct prng r;

	/* The first number of this stream is the rule's. */
	prng_seed2(&r, job_seed, round);
	(void)prng_u64(&r);
	return prng_u64(&r);
}

enum err
download_step_choose(struct download_step *d, const struct download_spec *spec, uint64_t elements,
    uint64_t seed, struct why *why)
{
	struct difference *step = &d->difference;

	*step = (struct difference){.elements = elements, .seed = seed};
	d->feedback = spec->feedback;
	if (!spec->codec[0])
		return ERR_OK;
	step->codec = codec_find_name(spec->codec);
	if (!step->codec || !difference_takes(step->codec))
		return err_set(why, ERR_UNSUPPORTED, "codec %s of downloads is not in this build",
		    spec->codec);
	step->payload_bytes = difference_payload_bytes(step->codec, elements);
	return ERR_OK;
}

enum err
download_step_run(
    const struct download_step *d, uint64_t first, const float *old, float *weights, float *lost)
{
	struct difference_tile t = difference_tile(&d->difference, first / DIFFERENCE_TILE);
	float wanted[DIFFERENCE_TILE], sent[DIFFERENCE_TILE];
	uint8_t spare[DIFFERENCE_TILE_BYTES];
	uint8_t *bytes = d->payload ? d->payload + t.at : spare;

	for (size_t i = 0; i < t.count; i++)
		wanted[i] = weights[i] - old[i];
	for (size_t i = 0; lost && i < t.count; i++)
		wanted[i] += lost[i];
	enum err e = difference_tile_encode(&d->difference, &t, wanted, bytes);
	if (!e)
		e = difference_tile_decode(&d->difference, &t, bytes, sent);
	if (e)
		return e == ERR_INVALID ? ERR_NUMERIC : e;
	for (size_t i = 0; lost && i < t.count; i++)
		lost[i] = wanted[i] - sent[i];
	memcpy(weights, old, t.count * sizeof(float));
	difference_add(weights, sent, t.count);
	return vec_all_finite(weights, t.count) ? ERR_OK : ERR_NUMERIC;
}
