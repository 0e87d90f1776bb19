#ifndef FLUSH_H
#define FLUSH_H
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Input for a parser whose last byte stands right before an unreadable page, so that reading past it crashes. The last one that was
 * freed serves again: some tests cut their input into many thousand pieces, and pages are dear. */
struct flush {
	char *map;
	size_t size;
	char *data;
};

static struct flush flush_kept;

static inline struct flush
flush_new(const void *data, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (len + page - 1) / page * page;
	struct flush f = {.size = room + page};

	if (flush_kept.size == f.size) {
		f.map = flush_kept.map;
		flush_kept.size = 0;
	} else {
		f.map =
		    mmap(NULL, f.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (f.map == MAP_FAILED || mprotect(f.map + room, page, PROT_NONE) != 0)
			abort();
	}
	f.data = f.map + room - len;
	if (len > 0)
		memcpy(f.data, data, len);
	return f;
}

static inline void
flush_free(struct flush *f)
{
	if (flush_kept.size > 0)
		munmap(flush_kept.map, flush_kept.size);
	flush_kept = *f;
}

#endif
