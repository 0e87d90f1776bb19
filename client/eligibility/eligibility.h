#ifndef ELIGIBILITY_H
#define ELIGIBILITY_H
#include "quota.h"
#include "settings.h"
#include "verdict.h"

/*
 * Whether the device may work now, by the rules of its owner's [eligibility]. A sensor is read only if a rule needs it, and at most every
 * ELIGIBILITY_EVERY_S. One thread at a time. Calls block on sensors, at times on D-Bus and the owner's program.
 */
#define ELIGIBILITY_EVERY_S 10.0
#define ELIGIBILITY_CHECK_S 60.0 /* between two starts of the owner's program */
/* The environment variable by which tests put a directory before the sensors' /sys, /proc and /run. */
#define ELIGIBILITY_ROOT "RIVULET_SENSORS_ROOT"

struct eligibility;

/* Asks the owner's program. True: the program says yes; else `said` takes its first line. Blocks. */
typedef bool eligibility_check(void *context, char said[VERDICT_TEXT_MAX]);

/* *out is NULL, and nothing is allocated, where the settings limit nothing. settings and home must outlive *out. */
ERR_MUST_USE enum err eligibility_new(
    struct eligibility **out, const struct settings *settings, const char *home, struct why *why);
void eligibility_free(struct eligibility *e);
/* Another process, `agent`, trains: its processor time is no load of others; this process's is. */
void eligibility_of(struct eligibility *e, pid_t agent);
/* Sets the function that asks the owner's program; until then a rule with a program does not let the device work. */
void eligibility_check_with(struct eligibility *e, eligibility_check *check, void *context);

/* The verdict now, or of the last look if that is recent enough. Belongs to e, until the next call. */
const struct verdict *eligibility_look(struct eligibility *e);
/* eligibility_look before something is sent: the link and the day's bytes are looked at now. */
const struct verdict *eligibility_look_at_link(struct eligibility *e);
/* The sensors' values of the last look. */
const struct readings *eligibility_readings(const struct eligibility *e);

/* Counts bytes before they go, as quota_charge. */
ERR_MUST_USE enum err eligibility_charge(
    struct eligibility *e, enum quota_way way, uint64_t bytes, struct why *why);
void eligibility_refund(struct eligibility *e, enum quota_way way, uint64_t bytes);

#endif
