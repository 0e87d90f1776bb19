#ifndef HOURS_H
#define HOURS_H
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "err.h"

/*
 * The minutes of a week in which a device may work, in local time: "Mon..Fri 22:00-06:00, Sat..Sun". An
 * hour that summer time leaves out is lost, and an hour that comes twice counts twice. Pure.
 */
#define HOURS_DAY 1440
#define HOURS_WEEK (7 * HOURS_DAY)

struct hours {
	bool given; /* false: the device may work in every minute */
	uint8_t minutes[HOURS_WEEK / 8]; /* a bit each, from Sunday 00:00 on */
};

/* Items between commas: DAY or DAY..DAY, HH:MM-HH:MM, or both. An item without a day means every day, without a time span the whole day; a
 * span that ends before it begins goes on into the next day; a span may end at 24:00. ERR_INVALID leaves *out alone. */
ERR_MUST_USE enum err hours_parse(struct hours *out, const char *text, struct why *why);
/* at: local time. */
bool hours_contain(const struct hours *h, const struct tm *at);

#endif
