#include "outbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "fault.h"
#include "file.h"
#include "hex.h"
#include "merkle.h"
#include "sign.h"

#define HEAD_LEN 64
#define SUFFIX ".delta"
#define TEMP ".temp"
#define TASK_LEN (OUTBOX_TASK_HEX - 1)

static void
path_of(const struct outbox *o, const char *task, const char *suffix, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%.32s%s", o->dir, task, suffix);
}

static bool
has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), k = strlen(suffix);

	return n >= k && strcmp(name + n - k, suffix) == 0;
}

enum err
outbox_init(struct outbox *o, const char *home, uint64_t max_bytes, struct why *why)
{
	struct dirent *ent;
	int n = snprintf(o->dir, sizeof(o->dir), "%s/outbox", home);

	if (n < 0 || (size_t)n >= sizeof(o->dir))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", home);
	o->max_bytes = max_bytes;
	enum err e = file_mkdirs(o->dir, 0700, why);
	if (e)
		return e;
	DIR *d = opendir(o->dir);
	if (!d)
		return err_errno(why, "open directory %s", o->dir);
	while ((ent = readdir(d)))
		if (has_suffix(ent->d_name, TEMP))
			unlinkat(dirfd(d), ent->d_name, 0);
	closedir(d);
	return ERR_OK;
}

/* Bytes of all but that task's; *entries: how many entries are complete, or NULL. */
static uint64_t
bytes_held(const struct outbox *o, const char *but, uint64_t *entries)
{
	DIR *d = opendir(o->dir);
	struct dirent *ent;
	struct stat st;
	uint64_t total = 0;

	if (!d)
		return 0;
	while ((ent = readdir(d)))
		if (strncmp(ent->d_name, but, TASK_LEN) != 0 &&
		    fstatat(dirfd(d), ent->d_name, &st, 0) == 0 && S_ISREG(st.st_mode)) {
			total += (uint64_t)st.st_size;
			if (entries && !has_suffix(ent->d_name, TEMP))
				++*entries;
		}
	closedir(d);
	return total;
}

void
outbox_held(const struct outbox *o, uint64_t *entries, uint64_t *bytes)
{
	*entries = 0;
	*bytes = bytes_held(o, "/", entries);
}

static void
put_head(uint8_t out[HEAD_LEN], const struct outbox_item *item)
{
	struct bytes_writer w = bytes_writer(out, HEAD_LEN);

	bytes_put(&w, "RVO1", 4);
	bytes_put_u32(&w, 1);
	bytes_put_u32(&w, (uint32_t)item->report_len);
	bytes_put_u32(&w, 0);
	bytes_put_u64(&w, item->leaves_len + item->payload_len);
	bytes_put_zeros(&w, w.left);
}

/* What stands around the payload; what stands behind it goes. */
static enum err
write_parts(const struct outbox_draft *d, const struct outbox_item *item, struct why *why)
{
	uint8_t head[HEAD_LEN];
	uint64_t end = d->body_at + item->leaves_len + item->payload_len;

	put_head(head, item);
	enum err e = file_pwrite(d->fd, head, HEAD_LEN, 0);
	if (!e)
		e = file_pwrite(d->fd, item->manifest, MANIFEST_LEN, HEAD_LEN);
	if (!e && item->report_len)
		e = file_pwrite(d->fd, item->report, item->report_len, HEAD_LEN + MANIFEST_LEN);
	if (!e && item->leaves_len)
		e = file_pwrite(d->fd, item->leaves, item->leaves_len, d->body_at);
	return e || ftruncate(d->fd, (off_t)end) != 0 ? err_errno(why, "write %s", d->temp)
						      : ERR_OK;
}

/* The task's id stands in the manifest. */
static void
task_of(char out[OUTBOX_TASK_HEX], const uint8_t *manifest)
{
	hex_encode(out, manifest + 96, 16);
}

static enum err
check_room(const struct outbox *o, const char *task, uint64_t need, struct why *why)
{
	uint64_t held = bytes_held(o, task, NULL);

	if (need > o->max_bytes || held > o->max_bytes - need)
		return err_set(why, ERR_NOSPACE, "outbox_bytes is used up");
	return ERR_OK;
}

enum err
outbox_begin(struct outbox_draft *d, const struct outbox *o, const char *task, size_t report_len,
    uint64_t least, struct why *why)
{
	*d = (struct outbox_draft){.fd = -1, .body_at = HEAD_LEN + MANIFEST_LEN + report_len};
	snprintf(d->task, sizeof(d->task), "%.32s", task);
	if (report_len > REPORT_MAX)
		return err_set(why, ERR_LIMIT, "report too long");
	enum err e = check_room(o, task, d->body_at + least, why);
	if (e)
		return e;
	path_of(o, task, TEMP, d->temp);
	d->fd = open(d->temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return d->fd < 0 ? err_errno(why, "create %s", d->temp) : ERR_OK;
}

enum err
outbox_commit(
    struct outbox_draft *d, const struct outbox *o, const struct outbox_item *item, struct why *why)
{
	char task[OUTBOX_TASK_HEX], path[PATH_MAX];

	task_of(task, item->manifest);
	if (strcmp(task, d->task) != 0)
		return err_set(why, ERR_INVALID, "the manifest is of another task");
	enum err e = check_room(o, task, d->body_at + item->leaves_len + item->payload_len, why);
	if (e)
		return e;
	path_of(o, task, SUFFIX, path);
	e = write_parts(d, item, why);
	FAULT("outbox.written");
	if (!e)
		e = file_commit(d->fd, d->temp, path, why);
	/* It may have its name already: what could not be kept for good is not to be sent. */
	if (e && access(d->temp, F_OK) != 0)
		unlink(path);
	if (!e)
		d->temp[0] = '\0';
	return e;
}

void
outbox_discard(struct outbox_draft *d)
{
	if (d->fd < 0)
		return;
	close(d->fd);
	d->fd = -1;
	if (d->temp[0])
		unlink(d->temp);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

size_t
outbox_list(const struct outbox *o, char (*tasks)[OUTBOX_TASK_HEX], size_t max)
{
	DIR *d = opendir(o->dir);
	struct dirent *ent;
	size_t n = 0;

	if (!d)
		return 0;
	while (n < max && (ent = readdir(d))) {
		if (strspn(ent->d_name, "0123456789abcdef") != TASK_LEN ||
		    strcmp(ent->d_name + TASK_LEN, SUFFIX) != 0)
			continue;
		memcpy(tasks[n], ent->d_name, TASK_LEN);
		tasks[n++][TASK_LEN] = '\0';
	}
	closedir(d);
	qsort(tasks, n, sizeof(*tasks), by_name);
	return n;
}

bool
outbox_has(const struct outbox *o, const char *task)
{
	char path[PATH_MAX];

	path_of(o, task, SUFFIX, path);
	return access(path, F_OK) == 0;
}

/* A disk that cannot read now says nothing about what is on it: only what is short is damaged. */
static enum err
unread(const struct outbox_entry *entry, enum err e, struct why *why)
{
	return err_set(why, e, "%s: %s", entry->path,
	    e == ERR_CORRUPT ? "too short" : "the disk cannot read it");
}

static enum err
read_head(struct outbox_entry *out, struct why *why)
{
	uint8_t head[HEAD_LEN];
	struct stat st;

	enum err e = fstat(out->fd, &st) == 0 ? file_pread(out->fd, head, HEAD_LEN, 0) : ERR_IO;
	if (e)
		return unread(out, e, why);
	struct bytes_reader r = bytes_reader(head, HEAD_LEN);
	char magic[4];
	bytes_get(&r, magic, 4);
	uint32_t version = bytes_get_u32(&r);
	out->report_len = bytes_get_u32(&r);
	bytes_get_u32(&r);
	out->body_bytes = bytes_get_u64(&r);
	out->body_at = HEAD_LEN + MANIFEST_LEN + (uint64_t)out->report_len;
	if (memcmp(magic, "RVO1", 4) != 0 || version != 1 || out->report_len > REPORT_MAX ||
	    out->body_bytes > (uint64_t)st.st_size ||
	    out->body_at + out->body_bytes != (uint64_t)st.st_size)
		return err_set(why, ERR_CORRUPT, "%s: head and size do not agree", out->path);
	e = file_pread(out->fd, out->raw, MANIFEST_LEN, HEAD_LEN);
	if (!e)
		e = file_pread(out->fd, out->report, out->report_len, HEAD_LEN + MANIFEST_LEN);
	return e ? unread(out, e, why) : ERR_OK;
}

static enum err
check_manifest(struct outbox_entry *out, const char *task, const uint8_t *spki, struct why *why)
{
	uint8_t digest[HASH_LEN];
	char id[OUTBOX_TASK_HEX];
	struct why inner;

	if (manifest_decode(&out->manifest, out->raw, MANIFEST_LEN, &inner))
		return err_set(why, ERR_CORRUPT, "%.100s: manifest: %.120s", out->path, inner.text);
	task_of(id, out->raw);
	if (strcmp(id, task) != 0)
		return err_set(why, ERR_CORRUPT, "%s: manifest of another task", out->path);
	if (manifest_body_bytes(out->manifest.payload_bytes) != out->body_bytes)
		return err_set(why, ERR_CORRUPT, "%s: body length", out->path);
	hash_sha256(digest, out->report, out->report_len);
	bool reported = out->manifest.flags & MANIFEST_REPORT;
	if (reported != (out->report_len > 0) ||
	    (reported && memcmp(digest, out->manifest.report_hash, HASH_LEN) != 0))
		return err_set(why, ERR_CORRUPT, "%s: report hash", out->path);
	if (!spki)
		return ERR_OK;
	hash_sha256(digest, out->raw, MANIFEST_SIGNED);
	if (sign_verify(spki, digest, out->raw + MANIFEST_SIGNED))
		return err_set(why, ERR_CORRUPT, "%s: signature", out->path);
	return ERR_OK;
}

/* Root, then each chunk against its leaf. `chunk` holds MANIFEST_CHUNK bytes. */
static enum err
check_chunks(const struct outbox_entry *in, const uint8_t *leaves, uint64_t n, void *chunk)
{
	uint8_t hash[HASH_LEN];
	uint64_t left = in->manifest.payload_bytes, at = in->body_at + n * HASH_LEN;

	merkle_root(hash, leaves, (size_t)n);
	if (memcmp(hash, in->manifest.root, HASH_LEN) != 0)
		return ERR_CORRUPT;
	for (uint64_t i = 0; i < n; i++) {
		size_t len = left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK;
		enum err e = file_pread(in->fd, chunk, len, at);
		if (e)
			return e;
		merkle_leaf(hash, chunk, len);
		if (memcmp(hash, leaves + i * HASH_LEN, HASH_LEN) != 0)
			return ERR_CORRUPT;
		at += len;
		left -= len;
	}
	return ERR_OK;
}

static enum err
check_body(const struct outbox_entry *in, struct why *why)
{
	/* body_bytes was compared with the size of the file, so the leaves are no larger than that. */
	uint64_t n = manifest_chunks(in->manifest.payload_bytes);
	if (n == 0)
		return ERR_OK;
	uint8_t *leaves = malloc((size_t)n * HASH_LEN);
	void *chunk = malloc(MANIFEST_CHUNK);
	enum err e = leaves && chunk ? ERR_OK : ERR_NOMEM;

	if (!e)
		e = file_pread(in->fd, leaves, (size_t)n * HASH_LEN, in->body_at);
	if (!e)
		e = check_chunks(in, leaves, n, chunk);
	if (e == ERR_CORRUPT)
		err_set(why, e, "%s: payload does not match its hashes", in->path);
	else if (e)
		err_set(why, e, "%s: %s", in->path, err_name(e));
	free(leaves);
	free(chunk);
	return e;
}

enum err
outbox_open(struct outbox_entry *out, const struct outbox *o, const char *task, const uint8_t *spki,
    struct why *why)
{
	path_of(o, task, SUFFIX, out->path);
	out->fd = open(out->path, O_RDONLY | O_CLOEXEC);
	if (out->fd < 0)
		return err_errno(why, "open %s", out->path);
	enum err e = read_head(out, why);
	if (!e)
		e = check_manifest(out, task, spki, why);
	if (!e && spki)
		e = check_body(out, why);
	if (e)
		outbox_close(out);
	return e;
}

void
outbox_close(struct outbox_entry *entry)
{
	if (entry->fd >= 0)
		close(entry->fd);
	entry->fd = -1;
}

void
outbox_remove(const struct outbox *o, const char *task)
{
	char path[PATH_MAX];

	path_of(o, task, SUFFIX, path);
	FAULT("outbox.remove");
	unlink(path);
	FAULT("outbox.removed");
}
