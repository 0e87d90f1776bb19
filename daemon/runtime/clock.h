#ifndef CLOCK_H
#define CLOCK_H
#include <stdint.h>

/* Monotonic milliseconds, for intervals; wall-clock Unix seconds, for people and certificates. Any thread. */
uint64_t clock_ms(void);
double clock_wall(void);

#endif
