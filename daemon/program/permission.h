#ifndef PERMISSION_H
#define PERMISSION_H
#include "err.h"

/*
 * Who a state directory belongs to, for errors that this explains: a command that somebody else ran, a copy that came back under another
 * owner. Asks the file system.
 */

/* Adds to *why what of the directory, of its folders and of the files in them this process may not use, whose it is, and what to do; nothing
 * if it may use all. Returns e. */
enum err permission_explain(const char *state_dir, enum err e, struct why *why);

#endif
