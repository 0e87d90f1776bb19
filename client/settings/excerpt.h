#ifndef EXCERPT_H
#define EXCERPT_H
#include <stddef.h>

#include "settings.h"

/*
 * The part of a failed task's log that the coordinator gets. The device's owner decides, for a trainer's output may hold any part of the
 * data. With SETTINGS_LOG_REASON: the class of the exception that ended a Python program, without its message, and the innermost line of
 * the traceback in the program's own files (not of Python's library or of installed packages; the innermost of all if there is none); ""
 * for all other output. Pure.
 */
void excerpt_make(char *out, size_t room, enum settings_log log, const char *text);

#endif
