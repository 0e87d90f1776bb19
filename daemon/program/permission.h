#ifndef PERMISSION_H
#define PERMISSION_H
#include "err.h"

/*
 * Explains an error by the owner of a state directory: another user ran the command, or a copy came back with another owner. Asks the file
 * system.
 */

/* Adds to *why which of the directory, its folders and their files this process may not use, who owns it, and what to do; nothing if this
 * process may use all. Returns e. */
enum err permission_explain(const char *state_dir, enum err e, struct why *why);

#endif
