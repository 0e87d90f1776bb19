#ifndef HOME_H
#define HOME_H
#include <stdbool.h>

#include "err.h"

/*
 * The home directory, in which one process works at a time: the process that trains, sends or changes the identity holds HOME/lock,
 * which has its number. Other processes leave requests, small files that the holder looks for.
 */
#define HOME_ROTATE "rotate" /* request: a new key */
#define HOME_ROTATE_FAILED "rotate.failed" /* why the last HOME_ROTATE failed, as text */

/* Takes the lock; *fd holds the lock until home_unlock. ERR_STATE: another process holds it (`why` has its number). */
ERR_MUST_USE enum err home_lock(int *fd, const char *home, struct why *why);
/* -1 is legal. */
void home_unlock(int fd);
/* The number of the process that holds the lock; 0: none does; -1: a process that did not write its number. */
long home_holder(const char *home);

/* Does HOME/name exist? Cheap enough for every second. */
bool home_has(const char *home, const char *name);
/* Writes a request or its outcome, durably. */
ERR_MUST_USE enum err home_put(
    const char *home, const char *name, const char *text, struct why *why);
/* Writes what the agent does now, one line for people and `rivulet doctor`. The file is written only when the line changes, so its date
 * says since when. A reader always finds a whole line. Not durable. */
#define HOME_LAST "last"
void home_note(const char *home, const char *word, const char *detail);
/* Removes a file, durably; an absent one is fine. */
ERR_MUST_USE enum err home_drop(const char *home, const char *name, struct why *why);

#endif
