#ifndef HOME_H
#define HOME_H
#include <stdbool.h>

#include "err.h"

/*
 * The home directory as a place where one process works at a time: HOME/lock is held by whoever trains, sends or changes
 * the identity, and names that process. Others leave requests, small files that the holder looks for.
 */
#define HOME_ROTATE "rotate" /* request: a new key, please */
#define HOME_ROTATE_FAILED "rotate.failed" /* why the last request came to nothing, as text */

/* Takes the lock; *fd holds it until home_unlock. ERR_STATE: another process works there (its number in why). */
ERR_MUST_USE enum err home_lock(int *fd, const char *home, struct why *why);
/* -1 is legal. */
void home_unlock(int fd);
/* The number of the process that holds the lock; 0: nobody; -1: somebody who did not say. */
long home_holder(const char *home);

/* Is there such a file? A look-up, no more: cheap enough to be asked every second. */
bool home_has(const char *home, const char *name);
/* Writes a request or its outcome, durably. */
ERR_MUST_USE enum err home_put(
    const char *home, const char *name, const char *text, struct why *why);
/* What the agent is at, one line for people and `rivulet doctor`; its file's time says since when: it is written where it changes. Whoever
 * reads it finds a whole line. Not durable. */
#define HOME_LAST "last"
void home_note(const char *home, const char *word, const char *detail);
/* Removes a file, durably; an absent one is fine. */
ERR_MUST_USE enum err home_drop(const char *home, const char *name, struct why *why);

#endif
