#include "participation.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "json.h"
#include "print.h"

/* --- a job */

static void
print_deciles(const struct json *deciles)
{
	static const struct cmd_column columns[] = {
	    {"SPEED DECILE", cmd_print_count, .key = "decile"},
	    {"DEVICES", cmd_print_count, .key = "devices"},
	    {"REPORTS", cmd_print_count, .key = "reports"},
	    {"STEPS/S FROM", cmd_print_figure, .key = "steps_per_s_min"},
	    {"TO", cmd_print_figure, .key = "steps_per_s_max"},
	    {.head = NULL},
	};

	if (json_count(deciles) > 0)
		cmd_print_rows(columns, deciles);
}

static void
print_never(const struct json *never)
{
	const struct json *names = json_get(never, "names");
	uint64_t devices = 0;

	(void)json_u64(json_get(never, "devices"), &devices);
	if (devices == 0)
		return;
	cmd_print_part("in no model yet: %llu of the devices that the job selects:",
	    (unsigned long long)devices);
	for (size_t i = 0; i < json_count(names); i++)
		cmd_print_part(" %s", json_string(json_at(names, i)));
	cmd_print_line("%s", devices > json_count(names) ? " ..." : "");
}

void
cmd_participation_print(const struct json *participation)
{
	const struct json *unmeasured = json_get(participation, "unmeasured");
	uint64_t devices = 0, reports = 0;

	print_deciles(json_get(participation, "deciles"));
	(void)json_u64(json_get(unmeasured, "devices"), &devices);
	(void)json_u64(json_get(unmeasured, "reports"), &reports);
	if (devices > 0)
		cmd_print_line("of unknown speed: %llu devices, %llu reports",
		    (unsigned long long)devices, (unsigned long long)reports);
	print_never(json_get(participation, "never"));
}

/* --- the fleet */

/* A name without what a cell of CSV cannot have, nor what begins a formula. */
static void
print_name(const char *name)
{
	const char *begin = name && *name ? name : "device";

	for (const char *c = begin; *c; c++) {
		bool good = *c > ' ' && *c <= '~' && *c != ',' && *c != '"' && *c != '#' &&
		    (c > begin || !strchr("=+-@", *c));
		putchar(good ? *c : '_');
	}
}

/* Empty where nothing is known. */
static void
print_number(const struct json *device, const char *key)
{
	double v;

	if (json_double(json_get(device, key), &v))
		printf(",%.6g", v);
	else
		printf(",");
}

static void
print_csv(const struct json *devices)
{
	static const char *const keys[] = {"samples_per_s", "up_bytes_per_s", "down_bytes_per_s",
	    "latency_s", "available", "failure"};

	printf("name,count");
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		cmd_print_part(",%s", keys[k]);
	printf("\n");
	for (size_t i = 0; i < json_count(devices); i++) {
		const struct json *device = json_at(devices, i);
		print_name(json_string(json_get(device, "name")));
		printf(",1");
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			print_number(device, keys[k]);
		printf("\n");
	}
}

int
cmd_participation_profile(int argc, char **argv)
{
	static const struct cmd_list list = {
	    {"device profile " CMD_ADMIN_USAGE,
		"Writes the active devices as the coordinator has seen them, as a fleet in CSV.\n"
		"A cell is empty where nothing was measured.",
		0, 0},
	    "/v1/fleet", "devices", print_csv};

	return cmd_admin_list(&list, argc, argv);
}
