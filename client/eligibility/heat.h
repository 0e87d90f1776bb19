#ifndef HEAT_H
#define HEAT_H
#include <stdbool.h>

/*
 * The hottest of the machine's thermal zones and processor sensors (hwmon: coretemp, k10temp, zenpower). Left out are radios, batteries
 * and what is known to state a constant. Blocks on sysfs.
 */
struct heat {
	double celsius; /* NaN: nothing measures */
	char name[64]; /* of the sensor */
};

/* root: what stands before /sys; "" but in tests. */
void heat_read(struct heat *out, const char *root);

#define HEAT_BELOW 5.0 /* so much cooler it must become, */
#define HEAT_REST_S 300.0 /* and so long it must not have been hot */
struct heat_state {
	bool hot;
	double last; /* when it was so */
};
/* Is it too hot? NaN is not. Pure; now: of any steady clock. */
bool heat_step(struct heat_state *s, double celsius, double most, double now);

#endif
