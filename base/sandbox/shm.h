#ifndef SHM_H
#define SHM_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "err.h"

/*
 * What programs leave in a directory of shared memory (/dev/shm), where it would take memory for ever. Everybody who starts programs
 * holds a shared lock of the directory while one of his lives; whoever gets it alone removes, of this user's entries, those that were
 * not there before and that no process has open, nor anything in them. So nothing goes of another user, of one who was there before, of a program in use.
 */
#define SHM_DIRECTORY "/dev/shm"

struct shm {
	int fd; /* of the directory, locked while a program lives; -1: there is nothing to do any more */
	struct shm_entry {
		dev_t device;
		ino_t inode;
	} * before; /* what was there; NULL: nobody looked yet */
	size_t count, room;
};

/* Before a program is started; *s is zeros with fd -1, or as shm_end left it. */
void shm_begin(struct shm *s, const char *directory);
/* After its end, and that of all that it started. False: programs of others live, and it is to be called again, now and then. */
bool shm_end(struct shm *s);
void shm_deinit(struct shm *s);

#endif
