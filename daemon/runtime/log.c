#include "log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "clock.h"

#define LINE_BYTES 1024

static atomic_ullong skipped_total;
static atomic_int threshold = LOG_LEVEL_INFO, format = LINE_TEXT;

void
log_set_level(enum log_level level)
{
	atomic_store(&threshold, (int)level);
}

void
log_set_format(enum line_format f)
{
	atomic_store(&format, (int)f);
}

bool
log_has_room(enum log_level level)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t second;
	static unsigned lines;
	static unsigned long long skipped;

	if ((int)level > atomic_load(&threshold))
		return false;
	uint64_t now = clock_ms() / 1000;
	pthread_mutex_lock(&lock);
	if (now != second)
		lines = 0;
	second = now;
	bool room = lines < LOG_CROWD;
	unsigned long long before = room ? skipped : 0;
	lines += room;
	skipped = room ? 0 : skipped + 1;
	pthread_mutex_unlock(&lock);
	if (!room)
		atomic_fetch_add(&skipped_total, 1);
	if (before > 0)
		log_event(LOG_LEVEL_INFO, "log.skipped", LOG_U("lines", before));
	return room;
}

unsigned long long
log_skipped(void)
{
	return atomic_load(&skipped_total);
}

void
log_pairs(enum log_level level, const char *event, const struct line_pair *pairs)
{
	char text[LINE_BYTES];

	if ((int)level > atomic_load(&threshold))
		return;
	const struct line line = {.journal = line_in_journal(),
	    .level = (int)level,
	    .wall = clock_wall(),
	    .event = event,
	    .pairs = pairs};
	size_t len = line_print(text, sizeof(text), (enum line_format)atomic_load(&format), &line);
	/* A log that cannot be written has nowhere to be reported. */
	ssize_t n = write(STDERR_FILENO, text, len);
	(void)n;
}
