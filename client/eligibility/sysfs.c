#include "sysfs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "num.h"

bool
sysfs_line(const struct sysfs_at *at, const char *name, char *out, size_t room)
{
	char path[SYSFS_PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s%s/%s", at->root, at->directory, name);

	out[0] = '\0';
	FILE *f = len > 0 && (size_t)len < sizeof(path) ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	bool got = fgets(out, (int)room, f) != NULL;
	fclose(f);
	out[got ? strcspn(out, "\n") : 0] = '\0';
	return got;
}

bool
sysfs_number(const struct sysfs_at *at, const char *name, double *out)
{
	char text[64];

	return sysfs_line(at, name, text, sizeof(text)) && num_double(text, out);
}

void
sysfs_each(const struct sysfs_at *at,
    void (*each)(void *context, const struct sysfs_at *entry, const char *name), void *context)
{
	char path[SYSFS_PATH_MAX];
	struct dirent **list = NULL;

	snprintf(path, sizeof(path), "%s%s", at->root, at->directory);
	int n = scandir(path, &list, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		int len = snprintf(path, sizeof(path), "%s/%s", at->directory, name);
		if (name[0] != '.' && len > 0 && (size_t)len < sizeof(path))
			each(context, &(struct sysfs_at){at->root, path}, name);
		free(list[i]);
	}
	free(list);
}
