#ifndef VERIFIED_H
#define VERIFIED_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * Which accepted files need not be hashed again: those whose every byte this process has checked within the last hour and that the
 * file system says nobody has written to since (inode, length, times of change). Any thread.
 */
struct spool_verified;

ERR_MUST_USE enum err spool_verified_new(struct spool_verified **out);
void spool_verified_free(struct spool_verified *t);
/* The open file was checked just now. Without memory for it, it will be checked again. */
void spool_verified_note(struct spool_verified *t, const uint8_t task[16], int fd);
bool spool_verified_holds(struct spool_verified *t, const uint8_t task[16], int fd);
void spool_verified_forget(struct spool_verified *t, const uint8_t task[16]);

#endif
