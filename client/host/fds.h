#ifndef FDS_H
#define FDS_H
#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* Messages with open files, between processes that a Unix socket connects. */
#define FDS_MAX 8

/* Sends a message with n open files, at most FDS_MAX. ERR_CLOSED if the other end is gone. */
ERR_MUST_USE enum err fds_send(int to, const void *data, size_t len, const int *fds, size_t n);
/* Waits for a message. Files that came are closed on exec; those of fds[n] that did not come are -1. False when the other end is gone. */
bool fds_receive(int from, void *data, size_t len, int *fds, size_t n);
/* Closes all descriptors from `first` on, except `kept` (-1: none). */
void fds_close_from(unsigned first, int kept);

#endif
