#ifndef POWER_H
#define POWER_H
#include <stdbool.h>

/*
 * Where the machine's power comes from, by the rule of systemd's on_ac_power (src/shared/battery-util.c): anything that is no battery
 * and `online` is mains; else a battery of the machine that discharges; else mains. A port of USB-C that gives power does not count,
 * nor does the battery of a mouse. A UPS that discharges counts as a battery. Blocks on sysfs.
 */
struct power {
	bool battery; /* the machine runs on battery */
	double charge; /* percent, mean of the machine's batteries; NaN: there are none */
	char name[64]; /* of the power supply that decided; "": none did */
};

/* root: what stands before /sys; "" but in tests. */
void power_read(struct power *out, const char *root);

#endif
