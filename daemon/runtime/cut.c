#include "cut.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static uintptr_t page_bytes = 4096;

/* Only system calls here; mmap(2) is one, whatever POSIX lists. */
static void
put_zeros(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	void *page = (void *)((uintptr_t)info->si_addr & ~(page_bytes - 1));

	(void)context;
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
