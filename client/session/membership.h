#ifndef MEMBERSHIP_H
#define MEMBERSHIP_H
#include <stdbool.h>

/*
 * Does the coordinator at that address (as address_normalise makes it) turn away the certificate in this home, so that only
 * joining again helps: because it does not know the device (an older or a new database), or its CA was replaced meanwhile, or
 * it is of a CA that this home does not know? False also where nobody answers. Blocks for a request or two; cancel and context as of transport_options.
 */
bool membership_lost(
    const char *home, const char *url, bool (*cancel)(void *context), void *context);

#endif
