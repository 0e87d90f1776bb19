#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sysfs.h"
#include "uplink.h"

#define SOCKET "/run/dbus/system_bus_socket"
#define TIMEOUT_US 2000000
#define SERVICE "org.freedesktop.NetworkManager"
#define OBJECT "/org/freedesktop/NetworkManager"

/* Of sd-bus.h, whose package need not be there. */
struct sd_bus;
struct functions {
	int (*create)(struct sd_bus **bus);
	int (*set_address)(struct sd_bus *bus, const char *address);
	int (*set_client)(struct sd_bus *bus, int yes);
	int (*set_timeout)(struct sd_bus *bus, uint64_t us);
	int (*start)(struct sd_bus *bus);
	int (*get)(struct sd_bus *bus, const char *service, const char *path, const char *interface,
	    const char *member, void *error, char type, void *out);
	struct sd_bus *(*unref)(struct sd_bus *bus);
};

/* A data pointer as one to a function: POSIX has dlsym so, ISO C has no cast for it. */
static bool
find(const struct uplink_bus *b, const char *name, void *function)
{
	void *symbol = dlsym(b->library, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

static bool
find_all(const struct uplink_bus *b, struct functions *f)
{
	return find(b, "sd_bus_new", &f->create) &&
	    find(b, "sd_bus_set_address", &f->set_address) &&
	    find(b, "sd_bus_set_bus_client", &f->set_client) &&
	    find(b, "sd_bus_set_method_call_timeout", &f->set_timeout) &&
	    find(b, "sd_bus_start", &f->start) && find(b, "sd_bus_get_property_trivial", &f->get) &&
	    find(b, "sd_bus_flush_close_unref", &f->unref);
}

static bool
load(struct uplink_bus *b)
{
	if (!b->tried)
		b->library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
	b->tried = true;
	return b->library != NULL;
}

void
uplink_bus_deinit(struct uplink_bus *b)
{
	if (b->library)
		dlclose(b->library);
	*b = (struct uplink_bus){.library = NULL};
}

static enum link_answer
ask(const struct functions *f, const char *address)
{
	struct sd_bus *bus = NULL;
	uint32_t metered = LINK_UNKNOWN;

	if (f->create(&bus) < 0)
		return LINK_UNKNOWN;
	if (f->set_address(bus, address) < 0 || f->set_client(bus, 1) < 0 ||
	    f->set_timeout(bus, TIMEOUT_US) < 0 || f->start(bus) < 0 ||
	    f->get(bus, SERVICE, OBJECT, SERVICE, "Metered", NULL, 'u', &metered) < 0)
		metered = LINK_UNKNOWN;
	f->unref(bus);
	return metered <= LINK_GUESS_NO ? (enum link_answer)metered : LINK_UNKNOWN;
}

enum link_answer
uplink_ask(struct uplink_bus *b, const char *root)
{
	char address[SYSFS_PATH_MAX + 16];
	struct functions f;

	snprintf(address, sizeof(address), "unix:path=%s" SOCKET, root);
	if (access(address + strlen("unix:path="), F_OK) != 0 || !load(b) || !find_all(b, &f))
		return LINK_UNKNOWN;
	return ask(&f, address);
}
