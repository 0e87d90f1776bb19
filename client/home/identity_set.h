#ifndef IDENTITY_SET_H
#define IDENTITY_SET_H
#include "identity.h"

struct join_answer;

/*
 * New certificates put into a home that is in use. They are several files that must change together, so the coordinator's
 * answer is first written whole to HOME/identity.next; from then on it counts. Putting it in place can be repeated from
 * any point, and whoever opens the home next finishes what a crash interrupted. A new key waits in HOME/key.new.pem and
 * takes the old one's place when the certificate is for it.
 *
 * All of it is for the holder of the home's lock.
 */
#define IDENTITY_SET_NEXT "identity.next"
#define IDENTITY_SET_KEY "key.new.pem"

/* Is the answer for this device and this key (KEY_SPKI_LEN bytes), and does it hold together: certificate and signer of the
 * CAs it names, dates in order? ERR_DENIED or ERR_INVALID says what is wrong. */
ERR_MUST_USE enum err identity_set_check(
    const struct join_answer *answer, const char *device, const uint8_t *spki, struct why *why);
/* Writes a checked answer durably; it is in place after identity_set_apply. */
ERR_MUST_USE enum err identity_set_stage(
    const char *home, const struct join_answer *answer, struct why *why);
/* Puts in place what is staged; ERR_OK also when nothing is. A staged file that cannot be read any more is dropped: the
 * coordinator gives another. */
ERR_MUST_USE enum err identity_set_apply(const char *home, struct why *why);
/* Removes the identity: from the first step on the home has not joined. Repeating it finishes the removal. */
ERR_MUST_USE enum err identity_set_wipe(const char *home, struct why *why);
/* Was a removal interrupted? */
bool identity_set_wiping(const char *home);

#endif
