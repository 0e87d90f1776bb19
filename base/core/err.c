#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[ERR_COUNT] = {
    [ERR_OK] = "ok",
    [ERR_AGAIN] = "again",
    [ERR_INVALID] = "invalid",
    [ERR_LIMIT] = "limit",
    [ERR_NOMEM] = "no-memory",
    [ERR_IO] = "io",
    [ERR_NOSPACE] = "no-space",
    [ERR_NOTFOUND] = "not-found",
    [ERR_EXISTS] = "exists",
    [ERR_DENIED] = "denied",
    [ERR_CORRUPT] = "corrupt",
    [ERR_UNSUPPORTED] = "unsupported",
    [ERR_CLOSED] = "closed",
    [ERR_TIMEOUT] = "timeout",
    [ERR_NUMERIC] = "numeric",
    [ERR_STATE] = "state",
    [ERR_READONLY] = "read-only",
    [ERR_FILES] = "no-descriptors",
};

const char *
err_name(enum err e)
{
	return (unsigned)e < ERR_COUNT ? names[e] : "unknown";
}

enum err
err_set(struct why *w, enum err e, const char *fmt, ...)
{
	va_list ap;

	if (!w)
		return e;
	va_start(ap, fmt);
	vsnprintf(w->text, sizeof(w->text), fmt, ap);
	va_end(ap);
	return e;
}

enum err
err_number(int number)
{
	switch (number) {
	case ENOSPC:
	case EDQUOT:
		return ERR_NOSPACE;
	case ENOENT:
		return ERR_NOTFOUND;
	case EACCES:
	case EPERM:
		return ERR_DENIED;
	case ENOMEM:
	case ENOBUFS:
		return ERR_NOMEM;
	case EROFS:
		return ERR_READONLY;
	case EMFILE:
	case ENFILE:
		return ERR_FILES;
	default:
		return ERR_IO;
	}
}

enum err
err_errno(struct why *w, const char *fmt, ...)
{
	int number = errno;
	va_list ap;
	char text[96];

	if (!w)
		return err_number(number);
	va_start(ap, fmt);
	vsnprintf(w->text, sizeof(w->text), fmt, ap);
	va_end(ap);
	size_t used = strlen(w->text);
	snprintf(
	    w->text + used, sizeof(w->text) - used, ": %s", strerror_r(number, text, sizeof(text)));
	return err_number(number);
}
