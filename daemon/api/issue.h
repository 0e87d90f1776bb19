#ifndef ISSUE_H
#define ISSUE_H
#include "exchange.h"
#include "store.h"

/* Certificates for devices, in the answer that joining, renewing and rotating share (FORMAT.md: Join). */

/* Sets the response: a certificate for the device's present key, or why there is none. */
void issue_answer(
    struct exchange *x, const struct store_device *device, bool joining, unsigned status);

#endif
