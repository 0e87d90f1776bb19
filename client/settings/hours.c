#include "hours.h"

#include <string.h>
#include <strings.h>

#include "num.h"

#define BLANKS " \t"

struct days {
	unsigned first, count;
};

struct span {
	unsigned begin, minutes;
};

static bool
take_day(const char **p, unsigned *day)
{
	static const char *const names[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

	for (unsigned i = 0; i < 7; i++)
		if (strncasecmp(*p, names[i], 3) == 0) {
			*day = i;
			*p += 3;
			return true;
		}
	return false;
}

/* "Mon" or "Fri..Mon". */
static bool
take_days(const char **p, struct days *out)
{
	unsigned last;

	if (!take_day(p, &out->first))
		return false;
	out->count = 1;
	if (strncmp(*p, "..", 2) != 0)
		return true;
	*p += 2;
	if (!take_day(p, &last))
		return false;
	out->count = (last + 7 - out->first) % 7 + 1;
	return true;
}

/* "06:00" to "24:00". */
static bool
take_time(const char **p, unsigned *minute)
{
	char hour[3] = "", rest[3] = "";
	const char *colon = *p + strspn(*p, "0123456789");
	size_t len = (size_t)(colon - *p);
	uint64_t h, m;

	if (len < 1 || len > 2 || *colon != ':' || strspn(colon + 1, "0123456789") != 2)
		return false;
	memcpy(hour, *p, len);
	memcpy(rest, colon + 1, 2);
	if (!num_u64(hour, 24, &h) || !num_u64(rest, 59, &m) || (h == 24 && m > 0))
		return false;
	*minute = (unsigned)(60 * h + m);
	*p = colon + 3;
	return true;
}

static bool
take_span(const char **p, struct span *out)
{
	unsigned end;

	if (!take_time(p, &out->begin) || **p != '-')
		return false;
	++*p;
	if (!take_time(p, &end) || out->begin == HOURS_DAY || end == out->begin)
		return false;
	out->minutes = end > out->begin ? end - out->begin : end + HOURS_DAY - out->begin;
	return true;
}

static void
mark(struct hours *h, struct days days, struct span span)
{
	for (unsigned d = 0; d < days.count; d++)
		for (unsigned m = 0; m < span.minutes; m++) {
			unsigned at = ((days.first + d) * HOURS_DAY + span.begin + m) % HOURS_WEEK;
			h->minutes[at / 8] |= (uint8_t)(1u << at % 8);
		}
}

/* Up to the comma or the end; false: something else stands there. */
static bool
take_item(struct hours *h, const char **p)
{
	struct days days = {0, 7};
	struct span span = {0, HOURS_DAY};

	*p += strspn(*p, BLANKS);
	bool named = take_days(p, &days);
	*p += strspn(*p, BLANKS);
	bool timed = **p >= '0' && **p <= '9';
	if ((timed && !take_span(p, &span)) || (!named && !timed))
		return false;
	*p += strspn(*p, BLANKS);
	mark(h, days, span);
	return **p == '\0' || **p == ',';
}

enum err
hours_parse(struct hours *out, const char *text, struct why *why)
{
	struct hours h = {.given = true};

	for (const char *p = text;; p++) {
		const char *item = p;
		if (!take_item(&h, &p))
			return err_set(why, ERR_INVALID,
			    "\"%.40s\" is not like Mon..Fri 22:00-06:00 or Sat", item);
		if (!*p)
			break;
	}
	*out = h;
	return ERR_OK;
}

bool
hours_contain(const struct hours *h, const struct tm *at)
{
	unsigned minute =
	    (unsigned)(at->tm_wday * HOURS_DAY + at->tm_hour * 60 + at->tm_min) % HOURS_WEEK;

	return !h->given || (h->minutes[minute / 8] >> minute % 8 & 1);
}
