#ifndef HOURS_H
#define HOURS_H
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "err.h"

/*
 * The minutes of a week at which a device may work, as its owner's clock on the wall has them: "Mon..Fri 22:00-06:00, Sat..Sun". An
 * hour that summer time leaves out is not missed, and one that comes twice counts twice. Pure.
 */
#define HOURS_DAY 1440
#define HOURS_WEEK (7 * HOURS_DAY)

struct hours {
	bool given; /* else every minute counts */
	uint8_t minutes[HOURS_WEEK / 8]; /* a bit each, from Sunday 00:00 on */
};

/* Items between commas: DAY or DAY..DAY, HH:MM-HH:MM, or both. Without a day every day is meant, without a span the whole day; a span
 * that ends before it begins goes on into the next day; 24:00 may end one. ERR_INVALID leaves *out alone. */
ERR_MUST_USE enum err hours_parse(struct hours *out, const char *text, struct why *why);
/* at: local time. */
bool hours_contain(const struct hours *h, const struct tm *at);

#endif
