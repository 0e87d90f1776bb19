#ifndef ELIGIBILITY_H
#define ELIGIBILITY_H
#include "quota.h"
#include "settings.h"
#include "verdict.h"

/*
 * Whether the device may work now, by its owner's [eligibility]. Sensors are read when their rule is there, and at most every
 * ELIGIBILITY_EVERY_S. One thread at a time. Calls block on sensors, at times on D-Bus and the owner's program.
 */
#define ELIGIBILITY_EVERY_S 10.0
#define ELIGIBILITY_CHECK_S 60.0 /* between two starts of the owner's program */
/* What tests put before /sys, /proc and /run of the sensors, in the environment. */
#define ELIGIBILITY_ROOT "RIVULET_SENSORS_ROOT"

struct eligibility;

/* Asks the owner's program; true: it says yes, else said takes its first line. Blocks. */
typedef bool eligibility_check(void *context, char said[VERDICT_TEXT_MAX]);

/* *out is NULL, and nothing costs anything, where the settings limit nothing. settings and home must outlive it. */
ERR_MUST_USE enum err eligibility_new(
    struct eligibility **out, const struct settings *settings, const char *home, struct why *why);
void eligibility_free(struct eligibility *e);
/* It is another process that trains: its processor time is no load, and not that of this one. */
void eligibility_of(struct eligibility *e, pid_t agent);
/* Until it is known who asks the owner's program, the answer is no. */
void eligibility_check_with(struct eligibility *e, eligibility_check *check, void *context);

/* What holds now, or did when it was looked at last. Belongs to e, until the next call. */
const struct verdict *eligibility_look(struct eligibility *e);
/* The same before something is sent: of the link and the day's bytes it is what holds at this second. */
const struct verdict *eligibility_look_at_link(struct eligibility *e);
/* What the sensors said then. */
const struct readings *eligibility_readings(const struct eligibility *e);

/* Counts bytes before they go, as quota_charge. */
ERR_MUST_USE enum err eligibility_charge(
    struct eligibility *e, enum quota_way way, uint64_t bytes, struct why *why);
void eligibility_refund(struct eligibility *e, enum quota_way way, uint64_t bytes);

#endif
