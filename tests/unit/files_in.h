#ifndef FILES_IN_H
#define FILES_IN_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

/* How many files a directory holds, those whose names begin with a dot not counted. */
static inline unsigned
files_in(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *ent;
	unsigned n = 0;

	assert_non_null(d);
	while ((ent = readdir(d)))
		n += ent->d_name[0] != '.';
	closedir(d);
	return n;
}

#endif
