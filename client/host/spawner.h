#ifndef SPAWNER_H
#define SPAWNER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "apart.h"
#include "err.h"

struct cgroup_place;

/*
 * A process that starts programs for its client (the agent) and watches over them, one program at a time. A spawner is forked before the
 * client has secrets or gives up rights: programs have no copy of the client's memory, and may do what the client can no longer. The
 * spawner ends with its client, however that ends, and kills whatever it started.
 */
struct spawner {
	int fd; /* also becomes readable when the program has ended */
	pid_t pid; /* 0: made by a spawner pool (spawner_pool.h) */
};

struct spawner_path {
	const char *path;
	unsigned access; /* of enum confine_access */
};

struct spawner_order {
	const char *const *argv; /* argv[0] is the program, looked up in PATH; NULL-terminated */
	/* The program's whole environment, "NAME=value"; NULL-terminated. */
	const char *const *environment;
	const char *directory; /* the program's working directory */
	int output, answer; /* the program's standard error and standard output */
	/* SPAWNER_WORDS descriptors more: the program reads the first as 3, and writes the second as 4; NULL: none */
	const int *words;
	/* The paths that the program may use (confine.h), as far as the kernel can enforce it; a missing path is ignored. NULL: all. */
	const struct spawner_path *paths;
	size_t path_count;
	const char *but; /* the directory left out, see confine_init; NULL: none */
	/* The program is killed if its processes together have more; 0: no limit. */
	uint64_t memory_bytes;
};

struct spawner_end {
	int status; /* as waitpid gives it */
	/* Bytes that the program had if it was killed for exceeding memory_bytes; else 0. */
	uint64_t memory;
};

/* Exit code of a program that could not be started; the reason is in its output. */
#define SPAWNER_FAILED 127

#define SPAWNER_WORDS 2

/* Forks a spawner; called before this process has other threads or secrets. */
ERR_MUST_USE enum err spawner_init(struct spawner *s, struct why *why);
/* Kills the program if it still runs, and waits for its end. */
void spawner_deinit(struct spawner *s);
/* Starts a program; the program before must have ended. ERR_CLOSED if the spawner is gone. */
ERR_MUST_USE enum err spawner_start(
    struct spawner *s, const struct spawner_order *order, struct why *why);
/* Sends a signal to the program's process group. */
void spawner_signal(struct spawner *s, int signal);
/* ERR_OK and *out once the program and all that it started have ended; ERR_AGAIN while the program runs, ERR_CLOSED if the spawner is gone.
 * Does not block. */
ERR_MUST_USE enum err spawner_ended(struct spawner *s, struct spawner_end *out);
/* The main loop of a spawner, which serves the other end of fd. place: where programs get control groups of their own; may be empty. apart:
 * the programs' user; NULL: this process's. */
_Noreturn void spawner_serve(int fd, const struct cgroup_place *place, const struct apart *apart);

#endif
