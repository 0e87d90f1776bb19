/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "power.h"

/* Machines as their /sys/class/power_supply and /sys/class/typec have them. A device is "PARENT/CLASS/NAME ATTRIBUTE=VALUE,...", where
 * the parent is below /sys/devices, as a class's links lead there. */
#define DEVICES_MAX 6
struct machine {
	const char *name;
	const char *devices[DEVICES_MAX];
	bool battery; /* what is right */
	int charge; /* -1: none */
	const char *by;
};

#define AC(on) "platform/ACPI0003:00/power_supply/AC type=Mains,online=" on
#define BAT(state, capacity) \
	"platform/PNP0C0A:00/power_supply/BAT0 type=Battery,present=1,status=" state \
	",capacity=" capacity
#define USBC(on) \
	"platform/USBC000:00/power_supply/ucsi-source-psy-USBC000:001 " \
	"type=USB,scope=System,online=" on
#define PORT(role) "platform/USBC000:00/typec/port0 data_role=[host] device,power_role=" role

static const struct machine machines[] = {
    {"desktop", {NULL}, false, -1, ""},
    {"desktop that knows its plug", {AC("1")}, false, -1, "AC"},
    {"laptop on mains", {AC("1"), BAT("Charging", "63")}, false, 63, "AC"},
    {"laptop on mains, full", {AC("1"), BAT("Full", "100")}, false, 100, "AC"},
    {"laptop on battery", {AC("0"), BAT("Discharging", "63")}, true, 63, "BAT0"},
    /* BOINC#6468: the plug is not seen, and there is no battery either. */
    {"laptop without a battery in it",
	{AC("0"), "platform/PNP0C0A:00/power_supply/BAT0 type=Battery,present=0,status=Unknown"},
	false, -1, ""},
    {"laptop that discharges on a weak plug", {AC("1"), BAT("Discharging", "41")}, false, 41, "AC"},
    {"laptop at its charging limit", {AC("0"), BAT("Not charging", "80")}, false, 80, ""},
    {"laptop with two batteries",
	{AC("0"), BAT("Unknown", "90"),
	    "platform/PNP0C0A:01/power_supply/BAT1 "
	    "type=Battery,present=1,status=Discharging,capacity=10"},
	true, 50, "BAT1"},
    /* laptop-mode-tools#191: no Mains, only USB-C. */
    {"laptop charged by USB-C", {USBC("1"), PORT("source [sink]"), BAT("Charging", "20")}, false,
	20, "ucsi-source-psy-USBC000:001"},
    {"laptop that charges a telephone by USB-C",
	{AC("0"), USBC("1"), PORT("[source] sink"), BAT("Discharging", "70")}, true, 70, "BAT0"},
    {"laptop with an empty USB-C port",
	{USBC("0"), PORT("source [sink]"), BAT("Discharging", "70")}, true, 70, "BAT0"},
    {"laptop with two ports, one that gives",
	{USBC("1"), PORT("[source] sink"),
	    "platform/USBC000:00/typec/port1 power_role=source [sink]", BAT("Charging", "70")},
	false, 70, "ucsi-source-psy-USBC000:001"},
    {"old laptop whose USB says nothing of roles",
	{"platform/charger/power_supply/usb type=USB,online=1", BAT("Charging", "55")}, false, 55,
	"usb"},
    /* TLP#768 */
    {"desktop with a mouse",
	{"usb1/0003:046D:4082/power_supply/hidpp_battery_0 "
	 "type=Battery,present=1,scope=Device,status=Discharging,capacity=5"},
	false, -1, ""},
    {"laptop on mains with a mouse",
	{AC("1"), BAT("Charging", "63"),
	    "usb1/0003:046D:4082/power_supply/hidpp_battery_0 "
	    "type=Battery,present=1,scope=Device,status=Discharging,capacity=5"},
	false, 63, "AC"},
    {"server with a UPS on mains",
	{"usb1/0003:051D:0002/power_supply/ups "
	 "type=UPS,online=1,present=1,status=Full,capacity=100"},
	false, -1, "ups"},
    {"server whose UPS has no mains",
	{"usb1/0003:051D:0002/power_supply/ups "
	 "type=UPS,online=0,present=1,status=Discharging,capacity=77"},
	true, 77, "ups"},
    {"Raspberry Pi", {"platform/soc/power_supply/rpi-poe type=Mains,online=1"}, false, -1,
	"rpi-poe"},
    {"Raspberry Pi with a battery hat",
	{"i2c-1/1-0036/power_supply/max17040 type=Battery,online=1,status=Discharging,capacity=88"},
	true, 88, "max17040"},
    {"Jetson", {"platform/bus@0/power_supply/ucsi-source-psy-1-0008 type=USB,online=0"}, false, -1,
	""},
    {"telephone on its charger",
	{"i2c-3/3-0010/power_supply/battery type=Battery,present=1,status=Charging,capacity=34",
	    "i2c-3/3-0010/power_supply/bms type=BMS,capacity=34",
	    "i2c-3/3-0011/power_supply/usb type=USB_DCP,online=1",
	    "i2c-3/3-0012/power_supply/wireless type=Wireless,online=0"},
	false, 34, "usb"},
    {"telephone in a pocket",
	{"i2c-3/3-0010/power_supply/battery type=Battery,present=1,status=Discharging,capacity=34",
	    "i2c-3/3-0011/power_supply/usb type=USB_DCP,online=0",
	    "i2c-3/3-0012/power_supply/wireless type=Wireless,online=0"},
	true, 34, "battery"},
    {"telephone on a pad",
	{"i2c-3/3-0010/power_supply/battery type=Battery,present=1,status=Charging,capacity=34",
	    "i2c-3/3-0012/power_supply/wireless type=Wireless,online=1"},
	false, 34, "wireless"},
};

static void
write_attribute(const char *dir, const char *text)
{
	char path[1200], name[64];
	const char *equal = strchr(text, '=');

	assert_true((size_t)(equal - text) < sizeof(name));
	memcpy(name, text, (size_t)(equal - text));
	name[equal - text] = '\0';
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", equal + 1);
	assert_int_equal(fclose(f), 0);
}

static void
make_device(const char *root, const char *device)
{
	char text[256], dir[1024], link[1024], to[1024];
	char *rest, *attributes;

	snprintf(text, sizeof(text), "%s", device);
	const char *where = strtok_r(text, " ", &rest);
	attributes = rest;
	snprintf(dir, sizeof(dir), "%s/sys/devices/%s", root, where);
	assert_int_equal(file_mkdirs(dir, 0755, NULL), ERR_OK);
	for (char *a = strtok_r(attributes, ",", &rest); a; a = strtok_r(NULL, ",", &rest))
		write_attribute(dir, a);
	const char *name = strrchr(where, '/') + 1;
	const char *class = strstr(where, "/typec/") ? "typec" : "power_supply";
	snprintf(link, sizeof(link), "%s/sys/class/%s", root, class);
	assert_int_equal(file_mkdirs(link, 0755, NULL), ERR_OK);
	snprintf(link, sizeof(link), "%s/sys/class/%s/%s", root, class, name);
	snprintf(to, sizeof(to), "../../devices/%s", where);
	assert_int_equal(symlink(to, link), 0);
}

static void
every_machine_is_known(void **state)
{
	size_t right = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
		const struct machine *m = &machines[i];
		char root[] = "/tmp/rivulet.power.XXXXXX";
		struct power p;
		assert_non_null(mkdtemp(root));
		for (size_t d = 0; d < DEVICES_MAX && m->devices[d]; d++)
			make_device(root, m->devices[d]);
		power_read(&p, root);
		assert_int_equal(file_remove_dir(root, NULL), ERR_OK);
		int charge = isnan(p.charge) ? -1 : (int)lround(p.charge);
		if (p.battery != m->battery || charge != m->charge || strcmp(p.name, m->by) != 0)
			fail_msg("%s: %s, %d %%, by \"%s\"", m->name,
			    p.battery ? "battery" : "mains", charge, p.name);
		right++;
	}
	assert_true(right >= 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_machine_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
