#ifndef HEALTH_H
#define HEALTH_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * Can the coordinator do its work? A failure of the machine (a full, read-only or broken disk, the database, descriptors, memory) is noted
 * where it shows. From then on the coordinator is not ready and hands out no tasks, and a thread (watch.h) tries every
 * two seconds whether the cause is gone; then rounds that could not be folded are folded again and devices are woken.
 * The thread also looks at the free space while there is no failure. Any thread; calls never block.
 */
struct health;
struct health_report; /* report.h */

ERR_MUST_USE enum err health_new(struct health **out);
void health_free(struct health *h);

/* Is this a failure of the machine, which passes when its cause is gone? Any other failure needs a person, or a better request. */
bool health_passes(enum err e);
/* Notes a failure if it is one of the machine. need: the bytes there was no room for, or 0. h NULL (in tests) is legal here, in
 * health_reason and in health_report. */
void health_note(struct health *h, enum err e, uint64_t need, const char *detail);
/* WAIT_NONE while ready. */
enum wait_reason health_reason(struct health *h);
void health_report(struct health *h, struct health_report *out);
/* What a person can do against the failure; never NULL. health_report and the log contain it. */
const char *health_remedy(enum wait_reason reason);

/* For watch.c. */
enum wait_reason health_reason_of(enum err e);
void health_set(struct health *h, enum wait_reason reason, uint64_t need, const char *detail);
uint64_t health_need(struct health *h);
double health_clear(struct health *h, enum wait_reason *reason);

#endif
