#include "load.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "sysfs.h"
#include "tree.h"

#define LEAST_S 0.5 /* of all processors; ticks are hundredths */

/* "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...". What a hypervisor took away is nobody's here. */
bool
load_read(struct load_sample *out, pid_t own, const char *root)
{
	const struct sysfs_at at = {root, "/proc"};
	double user, nice, system, idle, wait, irq = 0, soft = 0,
					       hertz = (double)sysconf(_SC_CLK_TCK);
	char line[256];

	if (!sysfs_line(&at, "stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait,
		&irq, &soft) < 5)
		return false;
	out->busy = (user + nice + system + irq + soft) / hertz;
	out->total = out->busy + (idle + wait) / hertz;
	out->own = tree_seconds(own);
	return true;
}

double
load_others(const struct load_sample *before, const struct load_sample *after)
{
	double total = after->total - before->total, busy = after->busy - before->busy;
	double own = after->own - before->own;

	if (!(total >= LEAST_S))
		return (double)NAN;
	/* Some of what we started may be gone together with its time. */
	if (own < 0)
		own = 0;
	return busy > own ? fmin(100, 100 * (busy - own) / total) : 0;
}

bool
load_step(struct load_state *s, double percent, double most)
{
	if (isnan(percent))
		return s->busy;
	bool change = s->busy ? percent < most * LOAD_FREE : percent > most;
	s->against = change ? s->against + 1 : 0;
	if (s->against >= LOAD_LOOKS || (change && !s->known)) {
		s->busy = !s->busy;
		s->against = 0;
	}
	s->known = true;
	return s->busy;
}
