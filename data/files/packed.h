#ifndef PACKED_H
#define PACKED_H
#include "array.h"

/*
 * Packed sets: examples, labels and class names in one file that can be mapped, as "rivulet data pack" writes them. The layout stands in
 * wire/FORMAT.md, "Packed data sets". The hash is not looked at here: "rivulet data show" does.
 */
#define PACKED_HEAD 128
#define PACKED_HASH_AT 96 /* SHA-256 of bytes 0..95 and all from PACKED_HEAD on */
#define PACKED_NAMES_MAX (1u << 20) /* bytes */

struct packed {
	struct array array; /* u8 or little-endian f32, of 2 or 4 dims; at is PACKED_HEAD */
	uint32_t classes; /* 0: there are targets */
	uint32_t target_width; /* 0: there are labels */
	uint32_t groups; /* different ones; 0: none are told apart */
	uint64_t names_bytes; /* 0: the classes have no names */
};

/* Where things lie. */
uint64_t packed_labels_at(const struct packed *p);
uint64_t packed_groups_at(const struct packed *p);
uint64_t packed_names_at(const struct packed *p);
uint64_t packed_length(const struct packed *p);

/* The first PACKED_HASH_AT bytes of the head; the rest is the hash. */
void packed_encode(uint8_t out[PACKED_HASH_AT], const struct packed *p);
/* A line for each class, of 1 to PACKED_NAME_MAX bytes that can be shown (shown.h): a coordinator takes no others in an offer. */
#define PACKED_NAME_MAX 63
ERR_MUST_USE enum err packed_names_check(
    const char *names, size_t bytes, uint32_t classes, struct why *why);
/* The head of a file of len bytes: every size is held against them, the names against the classes. */
ERR_MUST_USE enum err packed_decode(
    struct packed *out, const uint8_t *file, size_t len, struct why *why);
/* Labels (or groups), each below their number, or finite targets; the caller frees *out. */
ERR_MUST_USE enum err packed_labels(
    int32_t **out, const struct packed *p, const uint8_t *file, struct why *why);
ERR_MUST_USE enum err packed_groups(
    int32_t **out, const struct packed *p, const uint8_t *file, struct why *why);
ERR_MUST_USE enum err packed_targets(
    float **out, const struct packed *p, const uint8_t *file, struct why *why);

#endif
