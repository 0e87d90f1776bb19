#ifndef SYSFS_H
#define SYSFS_H
#include <stdbool.h>
#include <stddef.h>

/* Attributes of devices below a root. An attribute that cannot be read counts as absent. */
#define SYSFS_PATH_MAX 512

/* The first line of ROOT/DIRECTORY/NAME; false and "" if there is none. */
struct sysfs_at {
	const char *root, *directory; /* "" and "/sys/class/power_supply/BAT0" */
};
bool sysfs_line(const struct sysfs_at *at, const char *name, char *out, size_t room);
bool sysfs_number(const struct sysfs_at *at, const char *name, double *out);
/* Calls `each` for every entry of ROOT/DIRECTORY, in the order of their names; entry->directory is DIRECTORY/name. */
void sysfs_each(const struct sysfs_at *at,
    void (*each)(void *context, const struct sysfs_at *entry, const char *name), void *context);

#endif
