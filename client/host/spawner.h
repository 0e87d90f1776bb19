#ifndef SPAWNER_H
#define SPAWNER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apart.h"
#include "err.h"

struct cgroup_place;

/*
 * A process that starts programs for another and watches over them, one at a time. It is forked while there is nothing to hide and
 * nothing to give up: what it starts has no copy of the other's memory, and may do what the other can no longer. It ends with the
 * other, however that ends, and takes along whatever it started.
 */
struct spawner {
	int fd; /* becomes readable when the program ended, too */
	pid_t pid; /* 0: a nursery made it */
};

struct spawner_path {
	const char *path;
	unsigned access; /* of enum confine_access */
};

struct spawner_order {
	const char *const *argv; /* argv[0] is the program, looked up in PATH; NULL-terminated */
	const char *const *environment; /* the whole of it, "NAME=value"; NULL-terminated */
	const char *directory; /* where it runs */
	int output, answer; /* its standard error and standard output */
	/* SPAWNER_WORDS more: what it reads, as descriptor 3, and what it writes, as 4; NULL: none */
	const int *words;
	/* What it may reach (confine.h), as far as the kernel knows how; one that is not there is passed over. NULL: everything. */
	const struct spawner_path *paths;
	size_t path_count;
	const char *but; /* as in confine.h; NULL: nothing */
	uint64_t
	    memory_bytes; /* it is killed with more, all its processes taken together; 0: no cap */
};

struct spawner_end {
	int status; /* as waitpid gives it */
	uint64_t memory; /* more bytes than the cap, for which it was killed; else 0 */
};

/* Of a program that could not be started; the reason stands in its output. */
#define SPAWNER_FAILED 127

#define SPAWNER_WORDS 2

/* Call it before other threads and secrets are there. */
ERR_MUST_USE enum err spawner_init(struct spawner *s, struct why *why);
/* Kills what still runs, and waits until it is gone. */
void spawner_deinit(struct spawner *s);
/* The program of before has ended. ERR_CLOSED if the process is gone. */
ERR_MUST_USE enum err spawner_start(
    struct spawner *s, const struct spawner_order *order, struct why *why);
/* To the program's process group. */
void spawner_signal(struct spawner *s, int signal);
/* ERR_AGAIN while it runs, ERR_CLOSED if the process is gone. When it ended, so did all that it had started. Does not block. */
ERR_MUST_USE enum err spawner_ended(struct spawner *s, struct spawner_end *out);
/* What a new process becomes, at the other end of fd. place: where programs get control groups of their own; may be empty. apart: whose
 * user they get; NULL: that of this process. */
_Noreturn void spawner_serve(int fd, const struct cgroup_place *place, const struct apart *apart);

#endif
