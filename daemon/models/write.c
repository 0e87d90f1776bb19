#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "file.h"
#include "hash.h"
#include "models_inside.h"
#include "stop.h"

#define PIECE ((uint64_t)1 << 20) /* between two looks whether the program is to end */
#define SYNC_EACH ((uint64_t)16 << 20)

struct models_file {
	struct models *m;
	int fd;
	char path[PATH_MAX]; /* of the temporary file; "": it was renamed */
	struct hash *hash;
	uint64_t at, synced;
};

static const char *const suffixes[] = {
    [MODELS_KIND_MODEL] = "",
    [MODELS_KIND_STATE] = MODELS_STATE,
    [MODELS_KIND_DIFFERENCE] = MODELS_DIFFERENCE,
};

enum err
models_file_begin(struct models *m, struct models_file **out, struct why *why)
{
	struct models_file *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(why, ERR_NOMEM, "no memory");
	f->m = m;
	f->fd = -1;
	f->hash = hash_new();
	enum err e = f->hash ? ERR_OK : err_set(why, ERR_NOMEM, "no memory");
	if (!e) {
		hash_start(f->hash);
		models_temp_path(m, f->path, sizeof(f->path));
		f->fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (f->fd < 0) {
			e = err_errno(why, "create %s", f->path);
			f->path[0] = '\0';
		}
	}
	if (e)
		models_file_drop(f);
	else
		*out = f;
	return e;
}

static enum err
add_piece(struct models_file *f, const void *data, uint64_t len, struct why *why)
{
	enum err e = file_pwrite(f->fd, data, (size_t)len, f->at);

	if (e)
		return err_errno(why, "write %s", f->path);
	hash_update(f->hash, data, (size_t)len);
	f->at += len;
	if (f->at - f->synced >= SYNC_EACH) {
		f->synced = f->at;
		if (fdatasync(f->fd) != 0)
			return err_errno(why, "sync %s", f->path);
	}
	return stop_asked(f->m->stop) ? err_set(why, ERR_CLOSED, "the coordinator stops") : ERR_OK;
}

enum err
models_file_add(struct models_file *f, const void *data, uint64_t len, struct why *why)
{
	enum err e = ERR_OK;

	for (uint64_t at = 0; at < len && !e; at += PIECE)
		e = add_piece(
		    f, (const uint8_t *)data + at, len - at < PIECE ? len - at : PIECE, why);
	return e;
}

enum err
models_file_end(struct models_file *f, uint8_t hash[32], struct why *why)
{
	FAULT("model.part");
	if (fdatasync(f->fd) != 0)
		return err_errno(why, "sync %s", f->path);
	hash_finish(f->hash, hash);
	return ERR_OK;
}

enum err
models_file_keep(
    struct models_file *f, enum models_kind kind, const uint8_t id[32], struct why *why)
{
	char path[PATH_MAX];

	models_path(f->m, id, suffixes[kind], path);
	enum err e = file_rename(f->path, path, why);
	if (e)
		return e;
	f->path[0] = '\0';
	if (kind == MODELS_KIND_DIFFERENCE)
		FAULT("difference.written");
	models_wrote(f->m, id, suffixes[kind]);
	return ERR_OK;
}

void
models_file_drop(struct models_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	if (f->path[0])
		unlink(f->path);
	hash_free(f->hash);
	free(f);
}
