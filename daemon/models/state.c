#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "models_inside.h"

/* What lay on the disk when this process began may be cut or flipped. */
static enum err
map_bytes(struct models *m, struct models_map *map, const char *path, struct why *why)
{
	uint8_t hash[HASH_LEN];
	enum err e = models_map_file(map, path, m->stop, why);

	/* Once: devices ask for it one after the other, and most of them find no map of it. */
	if (e || models_is_sound(m, map->id))
		return e;
	e = hash_bytes(hash, map->data, map->bytes, m->stop);
	if (e)
		return err_set(why, e, e == ERR_CLOSED ? "told to end" : "no memory");
	if (memcmp(hash, map->id, HASH_LEN) != 0)
		return err_set(why, ERR_CORRUPT, "%s does not match its hash", path);
	models_set_sound(m, map->id, true);
	return ERR_OK;
}

enum err
models_state_map(struct models *m, const uint8_t hash[32], struct models_map **out, struct why *why)
{
	char path[PATH_MAX];

	*out = models_find_map(m, hash, hash);
	if (*out)
		return ERR_OK;
	models_path(m, hash, MODELS_STATE, path);
	struct models_map *map = calloc(1, sizeof(*map));
	if (!map)
		return ERR_NOMEM;
	memcpy(map->id, hash, 32);
	memcpy(map->from, hash, 32);
	enum err e = map_bytes(m, map, path, why);
	if (e)
		models_unmap(map);
	else
		*out = models_link_map(m, map);
	return e;
}
