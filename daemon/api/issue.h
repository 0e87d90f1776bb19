#ifndef ISSUE_H
#define ISSUE_H
#include <stdbool.h>

#include "err.h"

struct buf;
struct exchange;
struct services;
struct store_device;

/* Certificates for devices: joining, renewing and rotating have one form of answer (FORMAT.md: Join). */

/* Sets the response: a certificate for the device's present key, or the problem why there is none. */
void issue_answer(
    struct exchange *x, const struct store_device *device, bool joining, unsigned status);
/* The answer of issue_answer alone, appended to out. Any thread; takes as long as one signature. */
ERR_MUST_USE enum err issue_make(const struct services *s, const struct store_device *device,
    bool joining, struct buf *out, struct why *why);
#define ISSUE_ANSWER_MAX 65536

#endif
