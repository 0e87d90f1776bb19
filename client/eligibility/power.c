#include "power.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs.h"

#define SUPPLIES "/sys/class/power_supply"
#define PORTS "/sys/class/typec"

struct search {
	struct power *out;
	bool online; /* something that is no battery gives power */
	double charges; /* sum */
	unsigned batteries;
};

/* The ports that belong to the device with a given power supply. */
struct ports {
	char parent[PATH_MAX]; /* of the supply; ends with a slash */
	bool sink, source;
};

static void
look_at_port(void *context, const struct sysfs_at *port, const char *name)
{
	struct ports *p = context;
	char path[SYSFS_PATH_MAX + PATH_MAX], role[64];

	(void)name;
	snprintf(path, sizeof(path), "%s%s", port->root, port->directory);
	char *full = realpath(path, NULL);
	if (full && strncmp(full, p->parent, strlen(p->parent)) == 0 &&
	    sysfs_line(port, "power_role", role, sizeof(role))) {
		p->sink |= strstr(role, "[sink]") != NULL;
		p->source |= strstr(role, "[source]") != NULL;
	}
	free(full);
}

/* Where it says nothing of its ports it takes power. */
static bool
gives_power(const struct sysfs_at *supply)
{
	struct ports p = {.sink = false};
	char path[SYSFS_PATH_MAX + PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", supply->root, supply->directory);
	char *full = realpath(path, NULL);
	char *class = full ? strstr(full, "/power_supply/") : NULL;
	if (class) {
		snprintf(p.parent, sizeof(p.parent), "%.*s", (int)(class - full + 1), full);
		sysfs_each(&(struct sysfs_at){supply->root, PORTS}, look_at_port, &p);
	}
	free(full);
	return p.source && !p.sink;
}

static void
name_it(struct search *s, const char *name)
{
	snprintf(s->out->name, sizeof(s->out->name), "%s", name);
}

static bool
discharges(const struct sysfs_at *supply)
{
	char status[32];

	return sysfs_line(supply, "status", status, sizeof(status)) &&
	    strcmp(status, "Discharging") == 0;
}

static void
look_at_battery(struct search *s, const struct sysfs_at *supply, const char *name)
{
	char scope[32];
	double present, charge;

	if (sysfs_number(supply, "present", &present) && present < 1)
		return;
	if (sysfs_line(supply, "scope", scope, sizeof(scope)) && strcmp(scope, "Device") == 0)
		return;
	if (sysfs_number(supply, "capacity", &charge)) {
		s->charges += charge;
		s->batteries++;
	}
	if (!discharges(supply))
		return;
	s->out->battery = true;
	if (!s->online)
		name_it(s, name);
}

static void
look_at_supply(void *context, const struct sysfs_at *supply, const char *name)
{
	struct search *s = context;
	char type[32];
	double online;

	if (!sysfs_line(supply, "type", type, sizeof(type)))
		return;
	if (strcmp(type, "Battery") == 0 || (strcmp(type, "UPS") == 0 && discharges(supply))) {
		look_at_battery(s, supply, name);
		return;
	}
	if (strcmp(type, "USB") == 0 && gives_power(supply))
		return;
	if (!s->online && sysfs_number(supply, "online", &online) && online >= 1) {
		s->online = true;
		name_it(s, name);
	}
}

void
power_read(struct power *out, const char *root)
{
	struct search s = {.out = out};

	*out = (struct power){.charge = (double)NAN};
	sysfs_each(&(struct sysfs_at){root, SUPPLIES}, look_at_supply, &s);
	out->battery &= !s.online;
	if (s.batteries)
		out->charge = s.charges / s.batteries;
}
