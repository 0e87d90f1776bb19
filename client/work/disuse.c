#include "disuse.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "clock.h"

#define DAY 86400
#define MARK S_IXUSR

bool
disuse_is_within(const struct stat *st, unsigned days)
{
	return st->st_mtime >= clock_unix() - (time_t)days * DAY;
}

bool
disuse_is_over(int dir, const char *name, unsigned days)
{
	const struct timespec half[2] = {
	    {.tv_nsec = UTIME_OMIT}, {.tv_sec = clock_unix() - (time_t)days * DAY / 2}};
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_mode & MARK)
		return true;
	/* The date first: who is interrupted between the two begins again later. */
	if (utimensat(dir, name, half, AT_SYMLINK_NOFOLLOW) == 0)
		(void)!fchmodat(dir, name, (st.st_mode & 07777) | MARK, 0);
	return false;
}
