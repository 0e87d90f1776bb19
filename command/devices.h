#ifndef DEVICES_H
#define DEVICES_H
#include <stdbool.h>

#include "err.h"

/* Devices as a coordinator lists them: picked and shown. */
struct cmd_devices_filter {
	const char *state; /* NULL: any */
	const char *where; /* "k=v,k=v": all of these labels; NULL: any */
	const char *reason; /* why it waits, a word; NULL: any */
	bool cloned; /* only those seen on two machines */
	bool contested; /* only those that several keys claim to be */
};

/* ERR_INVALID: the labels are no list of k=v. */
ERR_MUST_USE enum err cmd_devices_check(const struct cmd_devices_filter *filter, struct why *why);
/* A new array of those that pass; the caller frees it. */
struct json *cmd_devices_pick(const struct json *devices, const struct cmd_devices_filter *filter);
/* A table, and a line of totals. */
void cmd_devices_print(const struct json *devices);
/* One device, a fact per line. */
void cmd_devices_one(const struct json *device);

#endif
