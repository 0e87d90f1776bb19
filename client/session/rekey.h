#ifndef REKEY_H
#define REKEY_H
#include "session.h"

/*
 * A new key for a device that keeps its id. The new key is on disk before anything is asked, and the request can be
 * repeated with it as often as need be: also after an answer was lost, when the coordinator takes the old key for nothing
 * else any more.
 */
/* Only in a session opened with `locked`. ERR_CLOSED, ERR_TIMEOUT, ERR_AGAIN: again later, with the same new key. Other
 * failures are final; ERR_DENIED as session_problem. */
ERR_MUST_USE enum err rekey_run(struct session *s, struct why *why);
/* Was a rotation begun and not finished? */
bool rekey_begun(const char *home);

#endif
