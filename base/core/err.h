#ifndef ERR_H
#define ERR_H
/*
 * Results of everything that can fail, and the one-line reason that goes with them.
 *
 * A function that can fail returns `enum err`; ERR_OK is 0, so `if (e)` reads "if it failed".
 * ERR_AGAIN is not a failure: the caller repeats the call when there is more input or room.
 * Where the bare code would not tell a person what to do, the function also takes a
 * `struct why *` (may be NULL) and writes one sentence without a final period.
 */
enum err {
	ERR_OK = 0,
	ERR_AGAIN, /* not finished: call again later */
	ERR_INVALID, /* malformed or contradictory input */
	ERR_LIMIT, /* input larger than a named limit */
	ERR_NOMEM, /* allocation failed */
	ERR_IO, /* the operating system refused; errno was put into why */
	ERR_NOSPACE, /* disk or quota full */
	ERR_NOTFOUND, /* no such thing */
	ERR_EXISTS, /* already there, or used already */
	ERR_DENIED, /* authentication or permission */
	ERR_CORRUPT, /* our own stored bytes do not check */
	ERR_UNSUPPORTED, /* known to exist, not handled by this build */
	ERR_CLOSED, /* the peer or the queue is gone */
	ERR_TIMEOUT, /* took too long */
	ERR_NUMERIC, /* not finite, or out of numeric range */
	ERR_STATE, /* not allowed in the present state */
	ERR_READONLY, /* the file system takes no writes */
	ERR_FILES, /* no descriptor left */
	ERR_COUNT
};

#define ERR_MUST_USE __attribute__((warn_unused_result))

struct why {
	char text[256];
};

/* A short constant name, "invalid", "no-space", ...; never NULL. */
const char *err_name(enum err e);

/* Formats the reason into w (if not NULL, truncating) and returns e, so that one line does both. */
enum err err_set(struct why *w, enum err e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Like err_set, appending ": " and strerror(errno). Maps ENOSPC and EDQUOT to ERR_NOSPACE, ENOENT to
 * ERR_NOTFOUND, EACCES and EPERM to ERR_DENIED, ENOMEM and ENOBUFS to ERR_NOMEM, EROFS to ERR_READONLY, EMFILE and ENFILE to
 * ERR_FILES and all else to ERR_IO. */
enum err err_number(int number); /* the mapping alone */
enum err err_errno(struct why *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
