#ifndef MODELS_INSIDE_H
#define MODELS_INSIDE_H
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "models.h"

/* Inside of models/: for this room only. */
struct models {
	char dir[PATH_MAX - 128];
	pthread_mutex_t lock;
	struct models_map *maps; /* those in use */
	/* models whose bytes were seen to match their name in this process; likewise states and differences */
	uint8_t (*sound)[32];
	size_t sound_count, sound_room;
	atomic_uint temp;
	_Atomic uint64_t joined; /* bytes of differences that are put together in memory */
	uint64_t joined_max; /* MODELS_JOINED_MAX */
	struct stop *stop; /* NULL: nobody asks for it */
};

void models_path(const struct models *m, const uint8_t id[32], const char *suffix, char *out);
bool models_is_sound(struct models *m, const uint8_t id[32]);
void models_set_sound(struct models *m, const uint8_t id[32], bool sound);
/* A reference to the map of id (of its difference to from, unless that is zeros) if it is in use already, or NULL. */
struct models_map *models_find_map(struct models *m, const uint8_t id[32], const uint8_t from[32]);
/* Shares a fresh map, or frees it if another thread was quicker; returns the shared one. */
struct models_map *models_link_map(struct models *m, struct models_map *fresh);
/* Maps a file of the folder and reads all of it. ERR_CORRUPT if it is empty or no file, ERR_CLOSED. */
ERR_MUST_USE enum err models_map_file(
    struct models_map *map, const char *path, struct stop *stop, struct why *why);
/* Frees a map that is not shared. */
void models_unmap(struct models_map *map);
/* Bytes that are not trusted any more, or have just been checked; of a difference by its model. */
void models_set_sound_of(struct models *m, enum models_kind kind, const uint8_t id[32], bool sound);

#endif
