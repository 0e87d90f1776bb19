#ifndef REKEY_H
#define REKEY_H
#include "session.h"

/*
 * Gives a device a new key; its id stays. The new key is on disk before the request, which can be repeated with this key as
 * often as needed: also after the answer was lost, when the coordinator accepts the old key for nothing else.
 */
/* Only in a session opened with `locked`. ERR_CLOSED, ERR_TIMEOUT, ERR_AGAIN: to be repeated later, with the same new key. Other
 * errors are final; ERR_DENIED as session_problem. */
ERR_MUST_USE enum err rekey_run(struct session *s, struct why *why);
/* Was a rotation begun and not finished? */
bool rekey_begun(const char *home);

#endif
