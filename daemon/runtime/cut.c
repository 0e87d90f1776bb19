#include "cut.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define REMEMBERED 64

static uintptr_t page_bytes = 4096;
/* Of the process, as its signals are. */
static atomic_ulong replaced;
static atomic_uintptr_t latest[REMEMBERED];

/* Only system calls here; mmap(2) is one, whatever POSIX lists. */
static void
put_zeros(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	void *page = (void *)((uintptr_t)info->si_addr & ~(page_bytes - 1));

	(void)context;
	/* Before its zeros can be read. */
	atomic_store(&latest[atomic_fetch_add(&replaced, 1) % REMEMBERED], (uintptr_t)page);
	/* Without the page the same access ends the program. */
	if (info->si_code != BUS_ADRERR ||
	    mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		-1, 0) == MAP_FAILED)
		signal(number, SIG_DFL);
	errno = saved;
}

void
cut_survive(void)
{
	struct sigaction act = {.sa_sigaction = put_zeros, .sa_flags = SA_SIGINFO};
	long bytes = sysconf(_SC_PAGESIZE);

	if (bytes > 0)
		page_bytes = (uintptr_t)bytes;
	sigemptyset(&act.sa_mask);
	sigaction(SIGBUS, &act, NULL);
}

unsigned long
cut_count(void)
{
	return atomic_load(&replaced);
}

bool
cut_hit(const void *data, size_t len, unsigned long since)
{
	const uintptr_t from = (uintptr_t)data & ~(page_bytes - 1), to = (uintptr_t)data + len;
	const unsigned long now = atomic_load(&replaced);

	if (now - since > REMEMBERED)
		return true;
	for (unsigned long i = since; i != now; i++) {
		uintptr_t page = atomic_load(&latest[i % REMEMBERED]);
		if (page >= from && page < to)
			return true;
	}
	return false;
}
