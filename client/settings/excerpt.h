#ifndef EXCERPT_H
#define EXCERPT_H
#include <stddef.h>

#include "settings.h"

/*
 * What the coordinator gets of a failed task's log: the owner of the device decides, for what a trainer says may hold anything of the
 * data. Of SETTINGS_LOG_REASON it is the class of the exception that ended a Python program, and the innermost line of the program's own
 * files (not of Python's library, nor of installed packages; the innermost of all where there is none), without its message; "" of
 * everything else. Pure.
 */
void excerpt_make(char *out, size_t room, enum settings_log log, const char *text);

#endif
