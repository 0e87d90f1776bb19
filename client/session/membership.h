#ifndef MEMBERSHIP_H
#define MEMBERSHIP_H
#include <stdbool.h>

/*
 * Does the coordinator at `url` (as address_normalise makes it) refuse the certificate in this home, so that only joining again
 * helps: because the coordinator does not know the device (an older or a new database), its CA was replaced meanwhile, or this home
 * does not know its CA? False also if the coordinator does not answer. Blocks for a request or two; cancel and context: see
 * transport_options.
 */
bool membership_lost(
    const char *home, const char *url, bool (*cancel)(void *context), void *context);

#endif
