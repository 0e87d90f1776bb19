#ifndef CHECKED_H
#define CHECKED_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * Which accepted files need not be hashed again: those whose every byte this process has checked within the last hour and that the
 * file system says nobody has written to since (inode, length, times of change). Any thread.
 */
struct spool_trust;

ERR_MUST_USE enum err spool_trust_new(struct spool_trust **out);
void spool_trust_free(struct spool_trust *t);
/* The open file was checked just now. Without memory for it, it will be checked again. */
void spool_trust_note(struct spool_trust *t, const uint8_t task[16], int fd);
bool spool_trust_holds(struct spool_trust *t, const uint8_t task[16], int fd);
void spool_trust_forget(struct spool_trust *t, const uint8_t task[16]);

#endif
