#ifndef FIGURES_FILE_H
#define FIGURES_FILE_H
#include <stdbool.h>
#include <stdint.h>

#include "device.h"

/*
 * [device] metrics_file: what the agent does, for node_exporter's textfile collector (Prometheus text 0.0.4, the table in figures_file.c). The file is
 * made anew beside its name and renamed, mode 0644, when the task or the reason for waiting has changed, else every FIGURES_FILE_EVERY_S
 * seconds. A file that cannot be written is logged once, and then not until one was. docs/devices.md names every metric.
 */
#define FIGURES_FILE_EVERY_S 10.0

/* Zeroed but for `start`: nothing was written yet. */
struct figures_file {
	double start; /* wall clock of the agent's start */
	double
	    next_at; /* backoff_now(): the file is not written before, unless something has changed */
	struct device_figures last; /* what the file says */
	bool failed; /* the last write, and the log says so */
};

/* Called often, from the agent's one thread: writes the file if it is time. */
void figures_file_tick(struct figures_file *m, struct rivulet *r);
/* Prints the file. ERR_NOMEM, ERR_LIMIT. */
ERR_MUST_USE enum err figures_file_print(
    struct buf *out, const struct figures_file *m, const struct device_figures *f);
/* Puts text in the file's place. The reason names the file. */
ERR_MUST_USE enum err figures_file_write(const char *path, const struct buf *text, struct why *why);

#endif
