#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "merkle.h"
#include "spool_inside.h"

/* The leaves of a bare payload; ERR_CORRUPT if they do not make the manifest's root. */
static enum err
make_leaves(int fd, const struct manifest *m, uint8_t *leaves, uint8_t *chunk)
{
	uint64_t n = manifest_chunks(m->payload_bytes), left = m->payload_bytes;
	uint8_t root[HASH_LEN];

	for (uint64_t i = 0; i < n; i++) {
		size_t len = left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK;
		enum err e = file_pread(fd, chunk, len, i * MANIFEST_CHUNK);
		if (e)
			return e;
		merkle_leaf(leaves + i * HASH_LEN, chunk, len);
		left -= len;
	}
	merkle_root(root, leaves, (size_t)n);
	return hash_equal(root, m->root, HASH_LEN) ? ERR_OK : ERR_CORRUPT;
}

static enum err
write_body(struct delta_file *to, int from, const uint8_t *leaves, uint8_t *chunk)
{
	enum err e = delta_file_write(to, leaves, (size_t)to->leaf_bytes, 0);
	uint64_t left = to->body_bytes - to->leaf_bytes;

	for (uint64_t at = 0; left > 0 && !e; at += MANIFEST_CHUNK) {
		size_t len = left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK;
		e = file_pread(from, chunk, len, at);
		if (!e)
			e = delta_file_write(to, chunk, len, to->leaf_bytes + at);
		left -= len;
	}
	return e;
}

/* The name is that of an older version's part: what a crash leaves of it goes at the next start. */
static enum err
rewrite(struct spool *s, const char *path, int from, const uint8_t *manifest, const uint8_t *leaves,
    uint8_t *chunk, struct why *why)
{
	struct delta_file to;
	char temp[1200];

	snprintf(
	    temp, sizeof(temp), "%.*s.0.part", (int)(strlen(path) - strlen(SUFFIX_DELTA)), path);
	int fd = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(why, "create %s", temp);
	enum err e = delta_file_create(&to, fd, manifest, spool_key(s), why);
	if (!e) {
		e = write_body(&to, from, leaves, chunk);
		err_set(why, e, "write %s: %s", temp, err_name(e));
	}
	if (!e)
		e = file_commit(to.fd, temp, path, why);
	if (e)
		unlink(temp);
	delta_file_close(&to);
	return e;
}

enum err
spool_upgrade(
    struct spool *s, const uint8_t task[16], const uint8_t manifest[MANIFEST_LEN], struct why *why)
{
	char hex[33], path[PATH_ROOM];
	struct delta_file present;
	struct manifest m;
	struct stat st;

	hex_encode(hex, task, 16);
	snprintf(path, sizeof(path), "%s/%s" SUFFIX_DELTA, s->dir, hex);
	enum err e = delta_file_open(&present, path, O_RDONLY, spool_key(s), NULL);
	delta_file_close(&present);
	if (e != ERR_CORRUPT || manifest_decode(&m, manifest, MANIFEST_LEN, NULL))
		return ERR_OK;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) != 0 || (uint64_t)st.st_size != m.payload_bytes) {
		if (fd >= 0)
			close(fd);
		return ERR_OK;
	}
	uint8_t *leaves = malloc((size_t)manifest_chunks(m.payload_bytes) * HASH_LEN);
	uint8_t *chunk = malloc(MANIFEST_CHUNK);
	e = leaves && chunk ? make_leaves(fd, &m, leaves, chunk)
			    : err_set(why, ERR_NOMEM, "no memory");
	if (!e)
		e = rewrite(s, path, fd, manifest, leaves, chunk, why);
	close(fd);
	free(leaves);
	free(chunk);
	/* Damage is named when every delta is hashed. */
	return e == ERR_CORRUPT || e == ERR_IO ? ERR_OK : e;
}
