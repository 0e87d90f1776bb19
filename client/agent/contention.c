#include "contention.h"

#include <dirent.h>
#include <stdio.h>

/* Seconds. */
#define WINDOW 0.03
/* What threads wait for on a machine that has nothing else to do: together, and each. */
#define ALWAYS 0.25
#define EACH 0.02
/* Windows: before one more is tried again, longer each time that it did not pay, and those after which it did. */
#define SOON 3
#define RARELY 128
#define PROVEN 8

/* By all threads of this process; the few that do not compute hardly wait. */
static double
read_waited(void)
{
	DIR *tasks = opendir("/proc/self/task");
	double sum = 0;

	for (struct dirent *d; tasks && (d = readdir(tasks));) {
		char path[sizeof("/proc/self/task//schedstat") + sizeof(d->d_name)];
		unsigned long long nanoseconds;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", d->d_name);
		FILE *f = d->d_name[0] != '.' ? fopen(path, "re") : NULL;
		if (f && fscanf(f, "%*u %llu", &nanoseconds) == 1)
			sum += 1e-9 * (double)nanoseconds;
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return sum;
}

void
contention_begin(struct contention *c, unsigned most, double now)
{
	*c = (struct contention){.most = most, .threads = most, .looked = now, .patience = SOON};
	if (most > 1)
		c->waited = read_waited();
}

static void
lower(struct contention *c, double share)
{
	unsigned by = share > 1 ? (unsigned)share : 1;

	c->patience = !c->raised ? SOON : 2 * c->patience < RARELY ? 2 * c->patience : RARELY;
	c->raised = false;
	c->threads = by < c->threads ? c->threads - by : 1;
}

static void
raise(struct contention *c)
{
	unsigned by = c->threads / 4 > 0 ? c->threads / 4 : 1;

	c->threads = c->threads + by < c->most ? c->threads + by : c->most;
	c->raised = true;
	c->calm = 0;
}

unsigned
contention_decide(struct contention *c, double share)
{
	if (share > ALWAYS + EACH * c->threads) {
		c->calm = 0;
		if (c->threads > 1)
			lower(c, share);
		return c->threads;
	}
	c->calm++;
	if (c->raised && c->calm >= PROVEN) {
		c->raised = false;
		c->patience = SOON;
	}
	if (c->threads < c->most && c->calm >= c->patience)
		raise(c);
	return c->threads;
}

unsigned
contention_threads(struct contention *c, double now)
{
	if (c->most == 1 || now < c->looked + WINDOW)
		return c->threads;
	double waited = read_waited(), share = (waited - c->waited) / (now - c->looked);
	c->waited = waited;
	c->looked = now;
	return contention_decide(c, share);
}
