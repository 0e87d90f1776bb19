#include "heat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sysfs.h"

#define ZONES "/sys/class/thermal"
#define CHIPS "/sys/class/hwmon"
#define LEAST (-50.0)
#define MOST 150.0 /* more is a broken sensor */
#define INPUTS 16 /* of a chip that are looked at */

static void
take(struct heat *out, const char *name, double millidegrees)
{
	double v = millidegrees / 1000;

	if (v < LEAST || v > MOST || v <= out->celsius)
		return;
	out->celsius = v;
	snprintf(out->name, sizeof(out->name), "%s", name);
}

/* Tegra's PMIC-Die always says 100 degrees. */
static bool
is_of_use(const char *type)
{
	static const char *const others[] = {"iwlwifi", "PMIC", "battery", "BAT", "mt79"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strncasecmp(type, others[i], strlen(others[i])) == 0)
			return false;
	return true;
}

static void
look_at_zone(void *context, const struct sysfs_at *zone, const char *name)
{
	char type[64];
	double v;

	if (strncmp(name, "thermal_zone", 12) == 0 &&
	    sysfs_line(zone, "type", type, sizeof(type)) && is_of_use(type) &&
	    sysfs_number(zone, "temp", &v))
		take(context, type, v);
}

static void
look_at_chip(void *context, const struct sysfs_at *chip, const char *name)
{
	static const char *const processors[] = {"coretemp", "k10temp", "zenpower"};
	char type[64], input[32];
	bool known = false;
	double v;

	(void)name;
	if (!sysfs_line(chip, "name", type, sizeof(type)))
		return;
	for (size_t i = 0; i < sizeof(processors) / sizeof(*processors); i++)
		known |= strcmp(type, processors[i]) == 0;
	for (int i = 1; known && i <= INPUTS; i++) {
		snprintf(input, sizeof(input), "temp%d_input", i);
		if (sysfs_number(chip, input, &v))
			take(context, type, v);
	}
}

void
heat_read(struct heat *out, const char *root)
{
	*out = (struct heat){.celsius = LEAST};
	sysfs_each(&(struct sysfs_at){root, ZONES}, look_at_zone, out);
	sysfs_each(&(struct sysfs_at){root, CHIPS}, look_at_chip, out);
	if (!*out->name)
		out->celsius = (double)NAN;
}

bool
heat_step(struct heat_state *s, double celsius, double most, double now)
{
	if (celsius >= most) {
		s->hot = true;
		s->last = now;
	} else if (s->hot && !(celsius > most - HEAT_BELOW) && now - s->last >= HEAT_REST_S) {
		s->hot = false;
	}
	return s->hot;
}
