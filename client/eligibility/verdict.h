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

/* Judges the sensors' values by the owner's rules. Pure. */
#define VERDICT_WORD_MAX 32
#define VERDICT_TEXT_MAX 160

struct readings {
	struct tm local;
	struct power power;
	struct heat heat;
	bool hot; /* the result of heat_step */
	double others; /* percent of the processors that other programs use; NaN: not known */
	bool busy; /* the result of load_step */
	bool checked; /* the owner's program says yes */
	char said[VERDICT_TEXT_MAX]; /* if not `checked`: the program's first line */
	struct link link;
	const struct quota *quota;
};

struct verdict {
	enum wait_reason reason; /* WAIT_NONE: the device may work */
	enum wait_reason training; /* by the rules that end training alone */
	enum wait_reason sending; /* by the rules that keep deltas on the device alone */
	/* The word of `reason`, or of the owner's program; "" for WAIT_NONE. */
	char word[VERDICT_WORD_MAX];
	char text[VERDICT_TEXT_MAX]; /* `reason` as a sentence */
};

void verdict_find(
    struct verdict *out, const struct settings_eligibility *rules, const struct readings *now);

#endif
