#ifndef MODELS_INSIDE_H
#define MODELS_INSIDE_H
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "models.h"
#include "report.h"

/* Inside of models/: for this room only. */
struct models {
	char dir[PATH_MAX - 128];
	pthread_mutex_t lock;
	struct models_map *maps; /* all maps in use */
	struct judged *judged; /* sound.c: files that were hashed in this process */
	size_t judged_count, judged_room;
	atomic_uint temp;
	_Atomic uint64_t joined; /* bytes of differences that are concatenated in memory */
	uint64_t joined_max; /* MODELS_JOINED_MAX */
	_Atomic uint64_t downloads[SENT_KINDS], download_bytes[SENT_KINDS];
	struct stop *stop; /* of models_until; NULL: nothing ends early */
};

void models_path(const struct models *m, const uint8_t id[32], const char *suffix, char *out);
/* sound.c. What the last hash of the file "<id><suffix>" found, if nobody has written to it since. */
enum models_verdict { MODELS_UNKNOWN, MODELS_SOUND, MODELS_DAMAGED };
enum models_verdict models_judged(
    struct models *m, const uint8_t id[32], const char *suffix, const struct stamp *now);
/* Notes that a file was hashed, and had this stamp before and after. */
void models_found(struct models *m, const uint8_t id[32], const char *suffix,
    const struct stamp *seen, bool sound);
/* Notes that this process has just written a file, which so is sound. */
void models_wrote(struct models *m, const uint8_t id[32], const char *suffix);
void models_forget(struct models *m, const uint8_t id[32], const char *suffix);
void models_sound_free(struct models *m);
/* A new reference to the map of id and from (as in models_map) if there is one in use, it could be read whole and has the stamp *now (zeros
 * for a map without a file; now NULL: any stamp); else NULL. */
struct models_map *models_find_map(
    struct models *m, const uint8_t id[32], const uint8_t from[32], const struct stamp *now);
/* Shares a fresh map, or frees it if another thread was quicker; returns the shared one. */
struct models_map *models_link_map(struct models *m, struct models_map *fresh);
/* Maps a file of the folder and reads all of it. ERR_CORRUPT if path is empty or no file, ERR_IO if it cannot be read, ERR_CLOSED. */
ERR_MUST_USE enum err models_map_file(
    struct models_map *map, const char *path, struct stop *stop, struct why *why);
/* Returns ERR_IO, and explains that the file of a map could not be read whole. */
ERR_MUST_USE enum err models_unread(const char *path, struct why *why);
/* Frees a map that is not shared. */
void models_unmap(struct models_map *map);
#endif
