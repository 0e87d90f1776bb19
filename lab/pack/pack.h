#ifndef PACK_H
#define PACK_H
#include "image.h"

struct csv_form;
struct packed;

/*
 * Packed data sets (packed.h): making them from a folder of pictures or from a table, and showing them.
 */
struct pack_pictures {
	const char *folder; /* see class_folder.h */
	uint32_t width, height; /* size to scale pictures to; 0: all must have one size */
	bool grey;
	enum image_alpha alpha;
	unsigned decoders; /* processes, at least 1 */
};

/* pack_pictures and pack_table write the file `out` durably, or leave it as it was; `why` names the file at fault. hash: the one in the
 * head. */
ERR_MUST_USE enum err pack_pictures(struct packed *made, uint8_t hash[32], const char *out,
    const struct pack_pictures *from, struct why *why);
ERR_MUST_USE enum err pack_table(struct packed *made, uint8_t hash[32], const char *out,
    const char *file, const struct csv_form *how, struct why *why);
/* The head of a packed file and the names of its classes, a line each (the caller frees *names); ERR_CORRUPT if the hash of the file's
 * bytes is not the one in the head. */
ERR_MUST_USE enum err pack_show(
    struct packed *out, char **names, uint8_t hash[32], const char *file, struct why *why);

#endif
