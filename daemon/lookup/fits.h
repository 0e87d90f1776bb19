#ifndef FITS_H
#define FITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What fits a word at one step of a lookup. Of the things of one name and one owner the one that holds the name is meant: one that
 * lives, else the latest. Things that are the same are one. Plain values; two places are enough to know that a word is ambiguous.
 */
#define FITS_NAME_MAX 65

struct fits_thing {
	uint8_t id[32]; /* of `id_len` bytes */
	size_t id_len;
	uint8_t owner[32];
	char name[FITS_NAME_MAX];
	bool lives; /* it holds its name */
	bool ages; /* of those that do not, the latest is meant */
	double age; /* when it was made, Unix seconds */
};

struct fits {
	struct fits_thing names[2], ids[2];
	size_t name_count, id_count; /* up to two of these are kept */
};

/* The thing has the word as its name. */
void fits_name(struct fits *f, const struct fits_thing *t);
/* The thing's id begins with the word. */
void fits_id(struct fits *f, const struct fits_thing *t);
/* How many different things fit (2: or more), the first two into out. */
size_t fits_found(const struct fits *f, struct fits_thing out[2]);

#endif
