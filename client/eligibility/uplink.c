#include "uplink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs.h"

#define UP 0x1u /* RTF_UP */
#define GATEWAY 0x2u /* RTF_GATEWAY */
#define ROUTES_MAX 100000 /* lines that are looked at */

static FILE *
open_table(const char *root, const char *path)
{
	char full[SYSFS_PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return fopen(full, "re");
}

/* "IFACE DESTINATION GATEWAY FLAGS REFCNT USE METRIC MASK ...": the default route with the least metric. */
static void
find_route4(const char *root, char interface[LINK_NAME_MAX])
{
	FILE *f = open_table(root, "/proc/net/route");
	char line[256], name[32];
	unsigned long to, mask, best = 0;
	unsigned flags;
	unsigned metric;

	for (unsigned n = 0; f && n < ROUTES_MAX && fgets(line, sizeof(line), f); n++) {
		if (sscanf(line, "%31s %lx %*x %x %*d %*d %u %lx", name, &to, &flags, &metric,
			&mask) != 5 ||
		    to != 0 || mask != 0 || !(flags & UP))
			continue;
		if (!*interface || metric < best) {
			snprintf(interface, LINK_NAME_MAX, "%s", name);
			best = metric;
		}
	}
	if (f)
		fclose(f);
}

/* "DESTINATION LENGTH SOURCE LENGTH NEXTHOP METRIC REFCNT USE FLAGS IFACE". */
static void
find_route6(const char *root, char interface[LINK_NAME_MAX])
{
	FILE *f = open_table(root, "/proc/net/ipv6_route");
	char line[256], to[40], name[32];
	unsigned length, metric, flags, best = 0;

	for (unsigned n = 0; f && n < ROUTES_MAX && fgets(line, sizeof(line), f); n++) {
		if (sscanf(line, "%39s %x %*s %*s %*s %x %*s %*s %x %31s", to, &length, &metric,
			&flags, name) != 5 ||
		    length != 0 || strspn(to, "0") != strlen(to) || !(flags & UP) ||
		    !(flags & GATEWAY))
			continue;
		if (!*interface || metric < best) {
			snprintf(interface, LINK_NAME_MAX, "%s", name);
			best = metric;
		}
	}
	if (f)
		fclose(f);
}

static bool
is_modem(const char *root, const char *interface)
{
	char path[SYSFS_PATH_MAX], line[128];
	bool modem = false;

	snprintf(path, sizeof(path), "/sys/class/net/%s/uevent", interface);
	FILE *f = open_table(root, path);
	while (f && fgets(line, sizeof(line), f))
		modem |= strcmp(line, "DEVTYPE=wwan\n") == 0;
	if (f)
		fclose(f);
	return modem;
}

void
uplink_read(struct link *out, struct uplink_bus *b, const char *root)
{
	*out = (struct link){.answer = uplink_ask(b, root)};
	find_route4(root, out->interface);
	if (!*out->interface)
		find_route6(root, out->interface);
	if (out->answer == LINK_UNKNOWN)
		out->metered = *out->interface && is_modem(root, out->interface);
	else
		out->metered = out->answer == LINK_YES || out->answer == LINK_GUESS_YES;
}
