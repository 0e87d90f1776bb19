#ifndef PACK_H
#define PACK_H
#include "image.h"

struct csv_form;
struct packed;

/*
 * Packed data sets (packed.h): made of a folder of pictures or of a table, and looked at.
 */
struct pack_pictures {
	const char *folder; /* see class_folder.h */
	uint32_t width, height; /* 0: all must be of one size */
	bool grey;
	enum image_alpha alpha;
	unsigned decoders; /* processes, at least 1 */
};

/* Each writes `out` durably, or leaves it as it was; `why` names the file at fault. The hash is that of the head. */
ERR_MUST_USE enum err pack_pictures(struct packed *made, uint8_t hash[32], const char *out,
    const struct pack_pictures *from, struct why *why);
ERR_MUST_USE enum err pack_table(struct packed *made, uint8_t hash[32], const char *out,
    const char *file, const struct csv_form *how, struct why *why);
/* The head of a packed file and the names of its classes, a line each (the caller's to free); ERR_CORRUPT if its bytes have another
 * hash than the head says. */
ERR_MUST_USE enum err pack_show(
    struct packed *out, char **names, uint8_t hash[32], const char *file, struct why *why);

#endif
