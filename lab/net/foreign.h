#ifndef FOREIGN_H
#define FOREIGN_H
#include <stdbool.h>

#include "err.h"

/* For `rivulet model inspect`: files of Rivulet that are not model files. Says what a file is, whose, and what to do with it. Blocks on the
 * disk. */

/* Prints a file that a device keeps for a job (devicefile.h). False: the file is no such file; true: it was printed, unless *e says why it
 * could not be. */
bool cmd_foreign_show(const char *path, bool json, enum err *e, struct why *why);
/* A sentence that says what the file is, if it begins as another kind of Rivulet's files does; else NULL. */
const char *cmd_foreign_name(const char *path);

#endif
