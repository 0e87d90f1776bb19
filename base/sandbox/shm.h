#ifndef SHM_H
#define SHM_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "err.h"

/*
 * Removes what programs leave in a directory of shared memory (/dev/shm), where leftovers would take memory for ever. Each process that
 * starts programs holds a shared lock of the directory while one of its programs lives. A process that gets the lock exclusively removes
 * those entries of this user that were not there before and that no process has open, nor anything in them. Entries of other users, older
 * entries and entries in use stay.
 */
#define SHM_DIRECTORY "/dev/shm"

struct shm {
	int fd; /* of the directory, locked while a program lives; -1: there is nothing to do any more */
	struct shm_entry {
		dev_t device;
		ino_t inode;
	} * before; /* the entries that shm_begin found first; NULL: shm_begin was not called yet */
	size_t count, room;
};

/* Called before a program is started; *s is zeros with fd -1, or as shm_end left it. */
void shm_begin(struct shm *s, const char *directory);
/* Called once the program and all processes that it started have ended. False: programs of another process still live; the caller calls
 * shm_end again now and then. */
bool shm_end(struct shm *s);
void shm_deinit(struct shm *s);

#endif
