#include "date.h"

#define DAY INT64_C(86400)
#define CYCLE INT64_C(146097) /* days of 400 years, after which the calendar begins again */
#define EPOCH INT64_C(719468) /* days from March 1st of year 0 to 1970 */

/* Years that begin in March: the day that comes and goes is their last. */
int64_t
date_seconds(const struct tm *tm)
{
	int64_t month = (tm->tm_mon + 10) % 12;
	int64_t year = tm->tm_year + INT64_C(1900) - (tm->tm_mon < 2);
	int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 +
	    tm->tm_mday - 1 - EPOCH;

	return days * DAY + tm->tm_hour * INT64_C(3600) + tm->tm_min * INT64_C(60) + tm->tm_sec;
}

void
date_parts(struct tm *tm, int64_t seconds)
{
	int64_t days = seconds / DAY - (seconds % DAY < 0), left = seconds - days * DAY;
	int64_t at = days + EPOCH, cycle = at / CYCLE;

	at -= cycle * CYCLE;
	int64_t year = (at - at / 1460 + at / 36524 - at / (CYCLE - 1)) / 365;
	int64_t day = at - (year * 365 + year / 4 - year / 100);
	int64_t month = (5 * day + 2) / 153;
	*tm = (struct tm){.tm_year = (int)(cycle * 400 + year + (month >= 10) - 1900),
	    .tm_mon = (int)((month + 2) % 12),
	    .tm_mday = (int)(day - (153 * month + 2) / 5 + 1),
	    .tm_hour = (int)(left / 3600),
	    .tm_min = (int)(left / 60 % 60),
	    .tm_sec = (int)(left % 60)};
}
