#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "models_inside.h"

/* Maps a state's file and hashes it, unless this process has and nobody has written to the file since. */
static enum err
map_bytes(struct models *m, struct models_map *map, const char *path, struct why *why)
{
	uint8_t hash[HASH_LEN];
	struct stamp after;

	enum err e = models_map_file(map, path, m->stop, why);
	/* Once: devices ask for it one after the other, and most of them find no map of it. */
	const enum models_verdict known = models_judged(m, map->id, MODELS_STATE, &map->stamp);
	if (e || known == MODELS_SOUND)
		return e;
	if (known == MODELS_DAMAGED)
		return err_set(why, ERR_CORRUPT, "%s does not match its hash", path);
	e = hash_bytes(hash, map->data, map->bytes, m->stop);
	if (e)
		return err_set(why, e, e == ERR_CLOSED ? "the coordinator stops" : "no memory");
	if (!models_map_whole(map))
		return models_unread(path, why);
	bool sound = memcmp(hash, map->id, HASH_LEN) == 0;
	e = stamp_of(path, &after, why);
	if (!e && stamp_same(&after, &map->stamp))
		models_found(m, map->id, MODELS_STATE, &after, sound);
	return !e && !sound ? err_set(why, ERR_CORRUPT, "%s does not match its hash", path) : e;
}

enum err
models_state_map(struct models *m, const uint8_t hash[32], struct models_map **out, struct why *why)
{
	struct stamp now;
	char path[PATH_MAX];

	models_path(m, hash, MODELS_STATE, path);
	enum err e = stamp_of(path, &now, why);
	if (e)
		return e;
	*out = models_find_map(m, hash, hash, &now);
	if (*out)
		return ERR_OK;
	struct models_map *map = calloc(1, sizeof(*map));
	if (!map)
		return ERR_NOMEM;
	map->stamp = now;
	memcpy(map->id, hash, 32);
	memcpy(map->from, hash, 32);
	e = map_bytes(m, map, path, why);
	if (e)
		models_unmap(map);
	else
		*out = models_link_map(m, map);
	return e;
}
