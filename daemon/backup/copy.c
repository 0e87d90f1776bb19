#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"

#define PIECE (1u << 20)

void
backup_copy_wait(void *arg, uint64_t bytes)
{
	struct backup_pace *pace = arg;

	pace->bytes += bytes;
	if (pace->rate == 0)
		return;
	uint64_t due = (uint64_t)((double)pace->bytes * 1000.0 / (double)pace->rate);
	uint64_t now = clock_ms() - pace->begun_ms;
	if (due > now) {
		struct timespec t = {
		    (time_t)((due - now) / 1000), (long)((due - now) % 1000) * 1000000};
		nanosleep(&t, NULL);
	}
}

/* Copies and hashes the bytes, and drops them from the page cache, which others need. */
static enum err
copy_bytes(
    int from, int to, uint8_t *piece, struct backup_pace *pace, struct backup_list_entry *entry)
{
	struct hash *h = hash_new();
	enum err e = h ? ERR_OK : ERR_NOMEM;

	entry->bytes = 0;
	if (h)
		hash_start(h);
	while (!e) {
		ssize_t n = pread(from, piece, PIECE, (off_t)entry->bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			e = n < 0 ? ERR_IO : ERR_OK;
			break;
		}
		hash_update(h, piece, (size_t)n);
		e = file_pwrite(to, piece, (size_t)n, entry->bytes);
		entry->bytes += (uint64_t)n;
		backup_copy_wait(pace, (uint64_t)n);
	}
	if (h)
		hash_finish(h, entry->sha256);
	hash_free(h);
	if (!e && fdatasync(to) != 0)
		e = err_errno(NULL, "sync");
	posix_fadvise(from, 0, 0, POSIX_FADV_DONTNEED);
	posix_fadvise(to, 0, 0, POSIX_FADV_DONTNEED);
	return e;
}

static enum err
copy_open(const char *from, const char *to, struct backup_pace *pace,
    struct backup_list_entry *entry, struct why *why)
{
	struct stat st;
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (in < 0)
		return err_errno(why, "open %s", from);
	if (fstat(in, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(in);
		return err_set(why, ERR_INVALID, "%s is not a file", from);
	}
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	enum err e = out < 0 ? err_errno(why, "create %s", to) : ERR_OK;
	uint8_t *piece = malloc(PIECE);
	if (!e) {
		e = piece ? copy_bytes(in, out, piece, pace, entry) : ERR_NOMEM;
		if (e)
			err_set(why, e, "copy %s to %s: %s", from, to, err_name(e));
	}
	free(piece);
	if (out >= 0)
		close(out);
	close(in);
	return e;
}

enum err
backup_copy_file(const struct backup_copy *what, struct backup_pace *pace,
    struct backup_list_entry *entry, struct why *why)
{
	char from[PATH_MAX], to[PATH_MAX], temp[PATH_MAX + 8];
	struct stat st;

	snprintf(entry->name, sizeof(entry->name), "%s", what->name);
	snprintf(from, sizeof(from), "%s/%s", what->from_dir, what->name);
	const char *as = what->as ? what->as : what->name;
	if (snprintf(to, sizeof(to), "%s/%s", what->to_dir, as) >= PATH_MAX)
		return err_set(why, ERR_LIMIT, "path too long: %s", what->to_dir);
	/* A name as of base/os/file, so that `check` knows what a crash left. */
	snprintf(temp, sizeof(temp), "%s.backup", to);
	if (lstat(to, &st) == 0)
		return err_set(why, ERR_EXISTS, "%s is there already", to);
	enum err e = copy_open(what->from ? what->from : from, temp, pace, entry, why);
	if (!e && rename(temp, to) != 0)
		e = err_errno(why, "rename %s", temp);
	if (e)
		unlink(temp);
	return e;
}
