#include "kept.h"

#include <stdlib.h>

#include "file.h"
#include "hash.h"

#define BYTES_MAX ((size_t)(SIZE_MAX / 2 < UINT64_C(1) << 36 ? SIZE_MAX / 2 : UINT64_C(1) << 36))

enum err
kept_init(struct kept *k, const struct devicefile *file)
{
	*k = (struct kept){.file = *file, .len = devicefile_bytes(file->kind, file->count)};
	if (k->len == 0)
		return ERR_LIMIT;
	k->data = calloc(1, k->len);
	return k->data ? ERR_OK : ERR_NOMEM;
}

void
kept_deinit(struct kept *k)
{
	free(k->data);
	k->data = NULL;
}

enum err
kept_read(struct kept *k, enum devicefile_kind kind, const char *path, struct why *why)
{
	char *data = NULL;

	*k = (struct kept){.data = NULL};
	enum err e = file_read(path, BYTES_MAX, &data, &k->len, why);
	if (e)
		return e;
	e = devicefile_decode(&k->file, data, k->len, hash_sha256, NULL);
	if (!e && k->file.kind == kind) {
		k->data = (uint8_t *)data;
		return ERR_OK;
	}
	free(data);
	return err_set(why, ERR_CORRUPT, "%s is damaged", path);
}

enum err
kept_write(const struct kept *k, const char *path, struct why *why)
{
	devicefile_encode(&k->file, k->data, hash_sha256);
	return file_write(path, k->data, k->len, 0600, why);
}

void *
kept_body(const struct kept *k)
{
	return k->data + devicefile_head(k->file.kind);
}
