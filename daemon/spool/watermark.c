#include "watermark.h"

#include <string.h>

#include "clock.h"
#include "spool_inside.h"

#define LASTS_MS 3600000

bool
spool_watermark_note(struct spool *s, struct spool_part *part, const struct delta_watermark *mark)
{
	pthread_mutex_lock(&s->lock);
	struct spool_slot *slot = part->slot;
	if (slot) {
		if (slot->good.at == 0)
			slot->good_ms = clock_ms();
		slot->good = *mark;
		spool_slot_sign(slot, part->file.fd);
	}
	pthread_mutex_unlock(&s->lock);
	return slot != NULL;
}

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool
is_untouched(const struct spool_slot *slot, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == slot->st.st_ino &&
	    st.st_size == slot->st.st_size && same_time(&st.st_mtim, &slot->st.st_mtim) &&
	    same_time(&st.st_ctim, &slot->st.st_ctim);
}

struct delta_watermark
spool_watermark_get(struct spool *s, struct spool_part *part)
{
	struct delta_watermark mark = {.at = 0};

	pthread_mutex_lock(&s->lock);
	struct spool_slot *slot = part->slot;
	bool counts = slot && slot->good.at > 0 && clock_ms() - slot->good_ms < LASTS_MS &&
	    is_untouched(slot, part->file.fd);
	if (counts)
		mark = slot->good;
	else if (slot)
		slot->good = mark;
	part->by_mark = counts;
	pthread_mutex_unlock(&s->lock);
	return mark;
}
