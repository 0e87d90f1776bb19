#include "store_wal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

#define HEADER 32
#define FRAME 24
#define MAGIC 0x377f0682u /* the lowest bit: big-endian checksums */
#define FORMAT 3007000
#define PAGE_MAX 65536

struct wal {
	int fd;
	bool big; /* byte order of the checksum's words */
	uint32_t page;
	uint32_t sum[2]; /* runs over all frames */
	uint8_t salts[8];
	uint64_t frames;
	uint8_t *frame;
};

static uint32_t
word(const uint8_t *p, bool big)
{
	return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
		   : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static void
add(struct wal *w, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i + 8 <= len; i += 8) {
		w->sum[0] += word(data + i, w->big) + w->sum[1];
		w->sum[1] += word(data + i + 4, w->big) + w->sum[0];
	}
}

static bool
sum_is(const struct wal *w, const uint8_t *at)
{
	return word(at, true) == w->sum[0] && word(at + 4, true) == w->sum[1];
}

static bool
read_header(struct wal *w, uint64_t bytes)
{
	uint8_t h[HEADER];

	if (file_pread(w->fd, h, sizeof(h), 0) != ERR_OK)
		return false;
	w->big = word(h, true) & 1;
	w->page = word(h + 8, true);
	memcpy(w->salts, h + 16, sizeof(w->salts));
	add(w, h, 24);
	if ((word(h, true) & ~1u) != MAGIC || word(h + 4, true) != FORMAT || !sum_is(w, h + 24) ||
	    w->page < 512 || w->page > PAGE_MAX || (w->page & (w->page - 1)) != 0)
		return false;
	w->frames = (bytes - HEADER) / (FRAME + w->page);
	return true;
}

/* Frames of this log's salts only: what an earlier, longer log left behind it is not looked at. */
static enum err
walk(struct wal *w, uint64_t *bad, uint64_t *commits, bool *more)
{
	*bad = *commits = 0;
	*more = false;
	for (uint64_t i = 0; i < w->frames; i++) {
		enum err e =
		    file_pread(w->fd, w->frame, FRAME + w->page, HEADER + i * (FRAME + w->page));
		if (e)
			return e;
		bool ours = memcmp(w->frame + 8, w->salts, 8) == 0;
		if (*bad == 0) {
			add(w, w->frame, 8);
			add(w, w->frame + FRAME, w->page);
			if (ours && sum_is(w, w->frame + 16))
				continue;
			*bad = i + 1;
		}
		if (!ours)
			continue;
		*more = *commits > 0;
		*commits += word(w->frame + 4, true) != 0;
	}
	return ERR_OK;
}

static enum err
judge(struct wal *w, const char *path, bool *torn, struct why *why)
{
	uint64_t bad, commits;
	bool more;

	w->frame = malloc(FRAME + w->page);
	if (!w->frame)
		return err_set(why, ERR_NOMEM, "no memory to check %s", path);
	enum err e = walk(w, &bad, &commits, &more);
	if (e)
		return err_set(why, e, "read %s: %s", path, err_name(e));
	*torn = commits > 0;
	/* A commit is synced before the next one's first frame is written: what stands before a frame was durable. */
	if (more)
		return err_set(why, ERR_CORRUPT,
		    "%s: frame %llu is damaged, and committed changes stand in it and behind it",
		    path, (unsigned long long)bad);
	return ERR_OK;
}

enum err
store_wal_check(const char *path, bool *torn, struct why *why)
{
	struct wal w = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
	enum err e = ERR_OK;
	struct stat st;

	*torn = false;
	if (w.fd < 0)
		return errno == ENOENT ? ERR_OK : err_errno(why, "open %s", path);
	if (fstat(w.fd, &st) != 0)
		e = err_errno(why, "stat %s", path);
	else if (st.st_size > HEADER && !read_header(&w, (uint64_t)st.st_size))
		e = err_set(why, ERR_CORRUPT, "%s: its header is damaged", path);
	else if (st.st_size > HEADER)
		e = judge(&w, path, torn, why);
	free(w.frame);
	close(w.fd);
	return e;
}
