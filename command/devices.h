#ifndef DEVICES_H
#define DEVICES_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct cmd_admin;
struct json;
/* Filters and shows the devices that a coordinator lists. */
struct cmd_devices_filter {
	const char *state; /* NULL: any */
	const char *where; /* "k=v,k=v": devices with all of these labels; NULL: any */
	const char *reason; /* devices that wait for this reason, a word; NULL: any */
	/* "7d": devices that were not heard of for so long, or never; NULL: any. cmd_devices_check sets silent_s. */
	const char *silent;
	uint64_t silent_s;
	/* A version, or what it begins with up to a point, plus or hyphen; NULL: any. */
	const char *agent;
	bool cloned; /* only devices seen on two machines */
	bool contested; /* only devices that several keys claim to be */
};

/* ERR_INVALID: the labels are no list of k=v, or another word is none. */
ERR_MUST_USE enum err cmd_devices_check(struct cmd_devices_filter *filter, struct why *why);
/* *out: a new array of the devices that pass the filter, which the caller frees. The coordinator filters; of an older one all are taken,
 * and filtered here. */
ERR_MUST_USE enum err cmd_devices_ask(struct cmd_admin *a, const struct cmd_devices_filter *filter,
    struct json **out, struct why *why);
/* Likewise of the devices that a coordinator lists, at Unix time `now`. */
struct json *cmd_devices_pick(
    const struct json *devices, const struct cmd_devices_filter *filter, double now);
/* Prints a table of devices, and a line of totals. */
void cmd_devices_print(const struct json *devices);
/* Prints one device, a fact per line. */
void cmd_devices_one(const struct json *device);

#endif
