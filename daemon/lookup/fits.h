#ifndef FITS_H
#define FITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The things (jobs, devices, models) that fit a word at one step of a lookup. Of several things of one name and one owner, the thing that
 * lives is meant, else the newest. A thing that is added twice counts once. At most two are kept: enough to know that a word is ambiguous.
 */
#define FITS_NAME_MAX 65

struct fits_thing {
	uint8_t id[32]; /* of `id_len` bytes */
	size_t id_len;
	uint8_t owner[32];
	char name[FITS_NAME_MAX];
	/* The thing holds its name: the job has not ended, the device is active or suspended. */
	bool lives;
	bool ages; /* of things that do not live, the newest is meant */
	double age; /* when the thing was made, Unix seconds */
};

struct fits {
	struct fits_thing names[2], ids[2];
	size_t name_count, id_count; /* at most 2 each */
};

/* Adds a thing whose name is the word. */
void fits_name(struct fits *f, const struct fits_thing *t);
/* Adds a thing whose id begins with the word. */
void fits_id(struct fits *f, const struct fits_thing *t);
/* Returns how many different things fit (2: two or more), and copies the first two into out. */
size_t fits_found(const struct fits *f, struct fits_thing out[2]);

#endif
