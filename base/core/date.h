#ifndef DATE_H
#define DATE_H
#include <stdint.h>
#include <time.h>

/* Unix seconds and the Gregorian calendar in UTC, also where a time_t has 32 bits and ends in 2038. Years 1 to 9999. Pure. */

/* Of tm year, mon, mday, hour, min and sec are read, as timegm does. */
int64_t date_seconds(const struct tm *tm);
/* Sets year, mon, mday, hour, min and sec; the rest is 0. */
void date_parts(struct tm *tm, int64_t seconds);

#endif
