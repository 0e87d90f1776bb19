#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "metrics_inside.h"
#include "services.h"

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Pages; proc(5). */
static void
read_memory(struct metrics_process *p)
{
	const double page = (double)sysconf(_SC_PAGESIZE);
	unsigned long long all, resident;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return;
	if (fscanf(f, "%llu %llu", &all, &resident) == 2) {
		p->virtual_bytes = (double)all * page;
		p->resident_bytes = (double)resident * page;
	}
	fclose(f);
}

/* But for the one that counts, ".", and "..". */
static double
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	double n = -3;

	if (!d)
		return NAN;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void
metrics_view_process(struct metrics_view *v, const struct services *s)
{
	struct metrics_process *p = &v->process;
	struct rlimit files;
	struct rusage used;

	*p = (struct metrics_process){NAN, s->started_at, NAN, NAN, open_files(), NAN};
	if (getrusage(RUSAGE_SELF, &used) == 0)
		p->cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		p->max_fds = files.rlim_cur == RLIM_INFINITY ? INFINITY : (double)files.rlim_cur;
	read_memory(p);
}
