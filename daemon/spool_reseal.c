#include "spool_reseal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hex.h"
#include "spool_state.h"

/* A new file under the part's name, in the part's place; *old is the one before, which has no name any more. */
static enum err
replace(struct spool *s, struct spool_part *part, struct delta_file *old, struct why *why)
{
	char path[PATH_ROOM], hex[33];
	struct delta_file fresh;

	hex_encode(hex, part->slot->task, sizeof(part->slot->task));
	snprintf(path, sizeof(path), "%s/%s%s", s->dir, hex, SUFFIX_PART);
	if (unlink(path) != 0 && errno != ENOENT)
		return err_errno(why, "remove %s", path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(why, "create %s", path);
	enum err e = delta_file_create(&fresh, fd, part->file.manifest, spool_key(s), why);
	if (e) {
		delta_file_close(&fresh);
		return e;
	}
	*old = part->file;
	part->file = fresh;
	part->slot->good.at = 0;
	/* What is copied was hashed in the old file, not in this one. */
	part->by_mark = true;
	return ERR_OK;
}

static enum err
copy(struct spool *s, struct spool_part *part, const struct delta_file *old, uint64_t bytes,
    struct why *why)
{
	uint8_t *piece = malloc(MANIFEST_CHUNK);
	enum err e = piece ? ERR_OK : ERR_NOMEM;

	for (uint64_t at = 0, n; at < bytes && e == ERR_OK; at += n) {
		n = bytes - at < MANIFEST_CHUNK ? bytes - at : MANIFEST_CHUNK;
		e = delta_file_read(old, piece, (size_t)n, at);
		if (e == ERR_OK)
			e = spool_write(s, part, piece, (size_t)n, at);
	}
	free(piece);
	return e ? err_set(why, e, "a part cannot be copied: %s", err_name(e)) : ERR_OK;
}

enum err
spool_reseal(struct spool *s, struct spool_part *part, uint64_t bytes, struct why *why)
{
	struct delta_file old = {.fd = -1};
	enum err e = ERR_AGAIN;

	pthread_mutex_lock(&s->lock);
	if (part->slot)
		e = replace(s, part, &old, why);
	pthread_mutex_unlock(&s->lock);
	if (e == ERR_OK)
		e = copy(s, part, &old, bytes, why);
	delta_file_close(&old);
	return e;
}
