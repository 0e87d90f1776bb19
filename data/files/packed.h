#ifndef PACKED_H
#define PACKED_H
#include "array.h"

/*
 * Packed sets: examples, labels and class names in one file that can be mapped, as "rivulet data pack" writes them. The layout stands in
 * wire/FORMAT.md, "Packed data sets". Nothing here checks the hash: "rivulet data show" does.
 */
#define PACKED_HEAD 128
#define PACKED_HASH_AT 96 /* SHA-256 of bytes 0..95 and all from PACKED_HEAD on */
#define PACKED_NAMES_MAX (1u << 20) /* bytes */

struct packed {
	struct array array; /* u8 or little-endian f32, of 2 or 4 dims; at is PACKED_HEAD */
	uint32_t classes; /* 0: there are targets */
	uint32_t target_width; /* 0: there are labels */
	uint32_t groups; /* number of different groups; 0: the set has none */
	uint64_t names_bytes; /* 0: the classes have no names */
};

/* Where labels (or targets) and class names begin, and the length of the file; in bytes. */
uint64_t packed_labels_at(const struct packed *p);
uint64_t packed_names_at(const struct packed *p);
uint64_t packed_length(const struct packed *p);

/* The first PACKED_HASH_AT bytes of the head; the rest is the hash. */
void packed_encode(uint8_t out[PACKED_HASH_AT], const struct packed *p);
/* Checks class names: a line for each class, of 1 to PACKED_NAME_MAX bytes that may be shown (shown.h), as coordinators want in offers. */
#define PACKED_NAME_MAX 63
ERR_MUST_USE enum err packed_names_check(
    const char *names, size_t bytes, uint32_t classes, struct why *why);
/* Reads the head of a file and checks every size against `len`, and the names against the number of classes. */
ERR_MUST_USE enum err packed_decode(
    struct packed *out, const uint8_t *file, size_t len, struct why *why);
/* The labels (each below p->classes), groups (each below p->groups) or targets (finite) of a file; the caller frees *out. */
ERR_MUST_USE enum err packed_labels(
    int32_t **out, const struct packed *p, const uint8_t *file, struct why *why);
ERR_MUST_USE enum err packed_groups(
    int32_t **out, const struct packed *p, const uint8_t *file, struct why *why);
ERR_MUST_USE enum err packed_targets(
    float **out, const struct packed *p, const uint8_t *file, struct why *why);

#endif
