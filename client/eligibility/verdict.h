#ifndef VERDICT_H
#define VERDICT_H
#include <stdbool.h>
#include <time.h>

#include "heat.h"
#include "power.h"
#include "quota.h"
#include "uplink.h"
#include "wait_reason.h"

struct settings_eligibility;

/* The owner's rules against what the sensors say. Pure. */
#define VERDICT_WORD_MAX 32
#define VERDICT_TEXT_MAX 160

struct readings {
	struct tm local;
	struct power power;
	struct heat heat;
	bool hot; /* with hysteresis */
	double others; /* percent of the processors; NaN: not known */
	bool busy; /* with hysteresis */
	bool checked; /* the owner's program says yes */
	char said[VERDICT_TEXT_MAX]; /* if not: its first line */
	struct link link;
	const struct quota *quota;
};

struct verdict {
	enum wait_reason reason; /* WAIT_NONE: the device may work */
	enum wait_reason training; /* the same of the rules that end training */
	enum wait_reason sending; /* and of those that keep deltas here */
	char word[VERDICT_WORD_MAX]; /* of reason, or the owner's own; "" */
	char text[VERDICT_TEXT_MAX]; /* a sentence */
};

void verdict_find(
    struct verdict *out, const struct settings_eligibility *rules, const struct readings *now);

#endif
