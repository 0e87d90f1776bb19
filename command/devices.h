#ifndef DEVICES_H
#define DEVICES_H
#include <stdbool.h>

#include "err.h"

/* Filters and shows the devices that a coordinator lists. */
struct cmd_devices_filter {
	const char *state; /* NULL: any */
	const char *where; /* "k=v,k=v": devices with all of these labels; NULL: any */
	const char *reason; /* devices that wait for this reason, a word; NULL: any */
	bool cloned; /* only devices seen on two machines */
	bool contested; /* only devices that several keys claim to be */
};

/* ERR_INVALID: the labels are no list of k=v. */
ERR_MUST_USE enum err cmd_devices_check(const struct cmd_devices_filter *filter, struct why *why);
/* A new array of the devices that pass the filter; the caller frees the array. */
struct json *cmd_devices_pick(const struct json *devices, const struct cmd_devices_filter *filter);
/* Prints a table of devices, and a line of totals. */
void cmd_devices_print(const struct json *devices);
/* Prints one device, a fact per line. */
void cmd_devices_one(const struct json *device);

#endif
