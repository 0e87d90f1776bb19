/* For clang-tidy only, before every file but base/core/err.c: the analyzer sees one file at a time and would think that err_set
 * and err_errno may return ERR_OK, and then complain of everything their callers left unset. */
#include "err.h"
#define err_set(w, e, ...) ((void)(err_set)(w, e, __VA_ARGS__), (e) ? (e) : ERR_INVALID)
#define err_errno(...) ((void)(err_errno)(__VA_ARGS__), ERR_IO)
