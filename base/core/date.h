#ifndef DATE_H
#define DATE_H
#include <stdint.h>
#include <time.h>

/* Unix seconds and the Gregorian calendar in UTC, also where a time_t has 32 bits and ends in 2038. Years 1 to 9999. Pure. */

/* The Unix seconds of a UTC date. Reads year, mon, mday, hour, min and sec of tm, as timegm does. */
int64_t date_seconds(const struct tm *tm);
/* The UTC date of Unix seconds. Sets year, mon, mday, hour, min and sec of tm; tm's other members become 0. */
void date_parts(struct tm *tm, int64_t seconds);

#endif
