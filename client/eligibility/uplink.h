#ifndef UPLINK_H
#define UPLINK_H
#include <stdbool.h>

/*
 * Does traffic of this machine cost by the byte? NetworkManager's property Metered says so where it runs; elsewhere a default route
 * over a modem (DEVTYPE=wwan) does. Blocks on D-Bus, 2 s at most, and on /proc and /sys.
 */
enum link_answer { LINK_UNKNOWN, LINK_YES, LINK_NO, LINK_GUESS_YES, LINK_GUESS_NO }; /* NMMetered */

/* libsystemd, loaded with dlopen at its first use. Begins zeroed. */
struct uplink_bus {
	void *library;
	bool tried;
};
void uplink_bus_deinit(struct uplink_bus *b);
/* What NetworkManager says; LINK_UNKNOWN without bus, library or NetworkManager. root: what stands before /run/dbus. */
enum link_answer uplink_ask(struct uplink_bus *b, const char *root);

#define LINK_NAME_MAX 64
struct link {
	bool metered;
	enum link_answer answer;
	char interface[LINK_NAME_MAX]; /* of the default route; "": no default route */
};
/* root: what stands before /run, /proc and /sys; "" but in tests. */
void uplink_read(struct link *out, struct uplink_bus *b, const char *root);

#endif
