#include "reseal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hex.h"
#include "spool_inside.h"

static void
part_path(const struct spool *s, const struct spool_part *part, const char *suffix, char *out)
{
	char hex[33];

	hex_encode(hex, part->slot->task, sizeof(part->slot->task));
	snprintf(out, PATH_ROOM, "%s/%s%s", s->dir, hex, suffix);
}

/* Makes an empty file for the copy, with a name of its own in path: the part stays as it is until the copy is whole. */
static enum err
create(struct spool *s, struct spool_part *part, struct delta_file *fresh, char path[PATH_ROOM],
    struct why *why)
{
	char suffix[32];

	snprintf(suffix, sizeof(suffix), ".%u%s", atomic_fetch_add(&s->copies, 1), SUFFIX_COPY);
	pthread_mutex_lock(&s->lock);
	bool live = part->slot != NULL;
	if (live)
		part_path(s, part, suffix, path);
	pthread_mutex_unlock(&s->lock);
	if (!live)
		return ERR_AGAIN;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		path[0] = '\0';
		return err_errno(why, "create a part's copy");
	}
	return delta_file_create(fresh, fd, part->file.manifest, spool_key(s), why);
}

static enum err
copy(const struct spool_part *part, struct delta_file *fresh, uint64_t bytes, struct why *why)
{
	uint8_t *piece = malloc(MANIFEST_CHUNK);
	enum err e = piece ? ERR_OK : ERR_NOMEM;

	for (uint64_t at = 0, n; at < bytes && !e; at += n) {
		n = bytes - at < MANIFEST_CHUNK ? bytes - at : MANIFEST_CHUNK;
		e = delta_file_read(&part->file, piece, (size_t)n, at);
		if (!e)
			e = delta_file_write(fresh, piece, (size_t)n, at);
	}
	free(piece);
	return e ? err_set(why, e, "a part cannot be copied: %s", err_name(e)) : ERR_OK;
}

/* Makes *fresh the part's file; *fresh is the old file then. Lock held. */
static enum err
replace(struct spool *s, struct spool_part *part, struct delta_file *fresh, const char *from,
    struct why *why)
{
	const struct delta_file old = part->file;
	char to[PATH_ROOM];

	part_path(s, part, SUFFIX_PART, to);
	if (rename(from, to) != 0)
		return err_errno(why, "rename %s", from);
	part->file = *fresh;
	*fresh = old;
	part->slot->good.at = 0;
	/* What is copied was hashed in the old file, not in this one. */
	part->by_mark = true;
	return ERR_OK;
}

enum err
spool_reseal(struct spool *s, struct spool_part *part, uint64_t bytes, struct why *why)
{
	struct delta_file fresh = {.fd = -1};
	char path[PATH_ROOM] = "";

	enum err e = create(s, part, &fresh, path, why);
	if (!e)
		e = copy(part, &fresh, bytes, why);
	pthread_mutex_lock(&s->lock);
	if (!e)
		e = part->slot ? replace(s, part, &fresh, path, why) : ERR_AGAIN;
	pthread_mutex_unlock(&s->lock);
	if (e && path[0])
		(void)!unlink(path);
	delta_file_close(&fresh);
	return e;
}
