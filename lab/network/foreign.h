#ifndef FOREIGN_H
#define FOREIGN_H
#include <stdbool.h>

#include "err.h"

/* Files of Rivulet's that are no model files, for `rivulet model inspect`: what they are, whose, and what to do with them. Blocks on the
 * disk. */

/* Is the file one that a device keeps of a job (devicefile.h)? Then it was printed, unless *e says why it could not be. */
bool cmd_foreign_show(const char *path, bool json, enum err *e, struct why *why);
/* Of another file that begins as one of ours does: a sentence of what it is; else NULL. */
const char *cmd_foreign_name(const char *path);

#endif
