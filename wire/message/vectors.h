#ifndef VECTORS_H
#define VECTORS_H
#include "codec.h"
#include "manifest.h"

/*
 * What a payload holds: one vector in a codec, or two of them of the same length, one behind the other (MANIFEST_SECOND; then
 * the codec is of fixed size). The second is encoded with the seed of the first plus one.
 */
struct vectors {
	const struct codec *codec; /* NULL: this build does not handle it */
	struct codec_params params; /* of the first */
	bool second;
};

struct vectors vectors_of(const struct manifest *m);
/* How the vector number `which`, 0 or 1, is encoded. */
struct codec_params vectors_params(const struct vectors *v, unsigned which);
/* Bytes of a payload whose first vector has `one` bytes; UINT64_MAX on overflow. */
uint64_t vectors_times(uint64_t one, bool second);
/* Bytes of the whole payload, or the most bytes if the codec has no fixed size; UINT64_MAX on overflow. */
uint64_t vectors_bytes(const struct vectors *v);
/* As codec.check over the whole payload; sum_squares counts the first vector alone. */
ERR_MUST_USE enum err vectors_check(const struct vectors *v, uint64_t at, const void *data,
    size_t len, double *sum_squares, uint8_t carry[64]);
/* As codec_read, of the vector number `which`; the source is the whole payload. */
ERR_MUST_USE enum err vectors_read(const struct vectors *v, unsigned which,
    const struct codec_source *source, uint64_t first, size_t count, float *out);

#endif
