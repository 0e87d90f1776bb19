#ifndef HEAT_H
#define HEAT_H
#include <stdbool.h>

/*
 * The hottest of the machine's thermal zones and processor sensors (hwmon: coretemp, k10temp, zenpower). Radios, batteries and sensors
 * that are known to report a constant are left out. Blocks on sysfs.
 */
struct heat {
	double celsius; /* NaN: nothing measures */
	char name[64]; /* of the sensor */
};

/* root: what stands before /sys; "" but in tests. */
void heat_read(struct heat *out, const char *root);

/* A hot machine is no longer hot once it is so many degrees below the limit, and has not reached the limit for so many seconds. */
#define HEAT_BELOW 5.0
#define HEAT_REST_S 300.0
struct heat_state {
	bool hot;
	double last; /* when the limit was last reached */
};
/* Is the machine too hot, with the limit `most` in degrees Celsius? A celsius of NaN is not. Pure; now: seconds of any monotonic clock. */
bool heat_step(struct heat_state *s, double celsius, double most, double now);

#endif
