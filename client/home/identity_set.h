#ifndef IDENTITY_SET_H
#define IDENTITY_SET_H
#include "identity.h"

struct join_answer;

/*
 * Puts new certificates into a home that is in use. Several files must change together, so the coordinator's answer is first
 * written whole to HOME/identity.next; from then on the answer counts. The change can be repeated from any point, and whoever
 * opens the home next finishes a change that a crash interrupted. A new key waits in HOME/key.new.pem and takes the place of
 * the old key when the certificate is for the new one.
 *
 * Only the holder of the home's lock may call these functions.
 */
#define IDENTITY_SET_NEXT "identity.next"
#define IDENTITY_SET_KEY "key.new.pem"

/* Is the answer for this device and this key (KEY_SPKI_LEN bytes), and consistent: certificate and signer issued by the answer's
 * CAs, dates in order? ERR_DENIED or ERR_INVALID says what is wrong. */
ERR_MUST_USE enum err identity_set_check(
    const struct join_answer *answer, const char *device, const uint8_t *spki, struct why *why);
/* Writes a checked answer to HOME/identity.next, durably; identity_set_apply puts it in place. */
ERR_MUST_USE enum err identity_set_stage(
    const char *home, const struct join_answer *answer, struct why *why);
/* Puts a staged answer in place; ERR_OK also when none is staged. A staged file that cannot be read is dropped: the
 * coordinator gives another answer. */
ERR_MUST_USE enum err identity_set_apply(const char *home, struct why *why);
/* Removes the identity: from the first step on the home has not joined. Repeating it finishes the removal. */
ERR_MUST_USE enum err identity_set_wipe(const char *home, struct why *why);
/* Was a removal interrupted? */
bool identity_set_wiping(const char *home);

#endif
