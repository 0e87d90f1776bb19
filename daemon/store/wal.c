#include "wal.h"

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

	if (file_pread(w->fd, h, sizeof(h), 0))
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

/* Does the frame at hand continue a log whose checksum was sum before it? */
static bool
follows(struct wal *w, const uint32_t sum[2])
{
	memcpy(w->sum, sum, sizeof(w->sum));
	add(w, w->frame, 8);
	add(w, w->frame + FRAME, w->page);
	return sum_is(w, w->frame + 16);
}

/* The rest of the log from the first frame with a wrong checksum on. */
struct rest {
	uint64_t bad; /* number of that frame, from 1; 0: every checksum is right */
	bool commits; /* the rest has commits */
	bool
	    lost; /* a commit stands before a frame that was written later: the commit was durable */
	bool
	    run; /* there is a commit among the frames that follow each other up to the present one */
	uint32_t stored[2],
	    computed[2]; /* checksums of the frame before: its own word, and what it should be */
};

/* Only frames with this log's salts count, not those that an earlier, longer log left behind. Frames that do not follow each other do
 * not count together: crashes leave ends of transactions that never were committed, one behind another. */
static void
see_rest(struct wal *w, struct rest *r, uint64_t number)
{
	bool ours = memcmp(w->frame + 8, w->salts, 8) == 0;
	bool commit = word(w->frame + 4, true) != 0;

	if (number == r->bad) {
		memcpy(r->computed, w->sum, sizeof(r->computed));
		r->run = commit;
	} else if (ours &&
	    (follows(w, r->stored) || (number == r->bad + 1 && follows(w, r->computed)))) {
		r->lost |= r->run;
		r->run |= commit;
	} else {
		r->run = ours && commit;
	}
	r->commits |= ours && commit;
	r->stored[0] = word(w->frame + 16, true);
	r->stored[1] = word(w->frame + 20, true);
}

static enum err
walk(struct wal *w, struct rest *r)
{
	for (uint64_t i = 0; i < w->frames; i++) {
		uint32_t sum[2] = {w->sum[0], w->sum[1]};
		enum err e =
		    file_pread(w->fd, w->frame, FRAME + w->page, HEADER + i * (FRAME + w->page));
		if (e)
			return e;
		if (r->bad == 0) {
			bool sound = follows(w, sum);
			if (sound && memcmp(w->frame + 8, w->salts, 8) == 0)
				continue;
			r->bad = i + 1;
		}
		see_rest(w, r, i + 1);
	}
	return ERR_OK;
}

static enum err
judge(struct wal *w, const char *path, bool *torn, struct why *why)
{
	struct rest r = {.bad = 0};

	w->frame = malloc(FRAME + w->page);
	if (!w->frame)
		return err_set(why, ERR_NOMEM, "no memory to check %s", path);
	enum err e = walk(w, &r);
	if (e)
		return err_set(why, e, "read %s: %s", path, err_name(e));
	*torn = r.commits;
	/* A commit is synced before the next one's first frame is written. */
	if (r.lost)
		return err_set(why, ERR_CORRUPT,
		    "%s: frame %llu is damaged, and committed changes stand in it and behind it",
		    path, (unsigned long long)r.bad);
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
