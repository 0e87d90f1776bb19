#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hash.h"
#include "models_inside.h"

/* What lay on the disk when this process began may be cut or flipped. */
static enum err
map_bytes(struct models *m, struct models_map *map, int fd, const char *path, struct why *why)
{
	uint8_t hash[HASH_LEN];
	struct stat st;

	if (fstat(fd, &st) != 0 || st.st_size == 0)
		return err_set(why, ERR_CORRUPT, "%s is empty", path);
	void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		return err_errno(why, "map %s", path);
	map->data = data;
	map->bytes = (uint64_t)st.st_size;
	/* Once: devices ask for it one after the other, and most of them find no map of it. */
	if (models_is_sound(m, map->id))
		return ERR_OK;
	hash_sha256(hash, map->data, map->bytes);
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
	models_path(m, hash, ".state", path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", path);
	struct models_map *map = calloc(1, sizeof(*map));
	enum err e = ERR_NOMEM;
	if (map) {
		memcpy(map->id, hash, 32);
		memcpy(map->from, hash, 32);
		e = map_bytes(m, map, fd, path, why);
	}
	close(fd);
	if (!e)
		*out = models_link_map(m, map);
	else if (map)
		models_unmap(map);
	return e;
}
