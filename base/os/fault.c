#include "fault.h"

#ifdef RIVULET_FAULTS
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "num.h"
#include "prng.h"

#define NAME_MAX_LEN 64

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char wanted[NAME_MAX_LEN]; /* the place that kills; "" for none or any */
static uint64_t wanted_hit = 1; /* its hit that does */
static uint64_t chance, seed; /* in a million, at any place */
static atomic_uint_least64_t hits; /* of the wanted place, or of all */
static int log_fd = -1;

/* "name", "name:N" or "random:P:S"; what cannot be read stays off. */
static void
read_environment(void)
{
	const char *text = getenv("RIVULET_FAULT"), *file = getenv("RIVULET_FAULT_LOG");
	const char *colon = text ? strchr(text, ':') : NULL;
	char number[24];

	if (file)
		log_fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (!text)
		return;
	if (strncmp(text, "random:", 7) == 0) {
		snprintf(number, sizeof(number), "%.*s", (int)strcspn(text + 7, ":"), text + 7);
		const char *last = strrchr(text, ':');
		if (!num_u64(number, 1000000, &chance) || !num_u64(last + 1, UINT64_MAX, &seed))
			chance = 0;
		return;
	}
	int len = colon ? (int)(colon - text) : (int)strlen(text);
	snprintf(wanted, sizeof(wanted), "%.*s", len, text);
	if (colon && !num_u64(colon + 1, UINT64_MAX, &wanted_hit))
		wanted[0] = '\0';
}

static bool
is_due(const char *name)
{
	struct prng draw;

	if (chance > 0) {
		prng_seed2(&draw, seed, atomic_fetch_add(&hits, 1));
		return prng_below(&draw, 1000000) < chance;
	}
	return strcmp(name, wanted) == 0 && atomic_fetch_add(&hits, 1) + 1 == wanted_hit;
}

void
fault_hit(const char *name)
{
	char line[NAME_MAX_LEN + 1];

	pthread_once(&once, read_environment);
	int len = snprintf(line, sizeof(line), "%s\n", name);
	/* One write, so that processes and threads may share the file. */
	if (log_fd >= 0 && write(log_fd, line, (size_t)len) != len)
		log_fd = -1;
	if (!is_due(name))
		return;
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}
#endif
