#include "permission.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

#define FILES_MAX 4096 /* looked at in a folder: a stray owner is mostly that of all */
#define NAME_ROOM 40

struct found {
	char path[CONFIG_PATH_MAX + 512];
	struct stat st;
};

static const char *
user_name(uid_t uid, char out[NAME_ROOM])
{
	const struct passwd *p = getpwuid(uid);

	if (p)
		snprintf(out, NAME_ROOM, "%s", p->pw_name);
	else
		snprintf(out, NAME_ROOM, "%u", (unsigned)uid);
	return out;
}

/* Is this file or folder closed to this process? Files in a folder are only read, or written anew. */
static bool
is_closed(struct found *f, bool inner)
{
	if (stat(f->path, &f->st) != 0 || (!S_ISDIR(f->st.st_mode) && !S_ISREG(f->st.st_mode)))
		return false;
	const int enter = R_OK | W_OK | X_OK, use = inner ? R_OK : R_OK | W_OK;
	const int want = S_ISDIR(f->st.st_mode) ? enter : use;
	return access(f->path, want) != 0 && errno == EACCES;
}

/* Looks for a closed file in a folder, or in its folders; false: there is none. */
static bool
look_in(const char *dir, unsigned deeper, struct found *f)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;
	bool found = false;

	for (unsigned i = 0; d && !found && i < FILES_MAX && (entry = readdir(d)); i++) {
		if (entry->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(f->path, sizeof(f->path), "%s/%s", dir, entry->d_name) >=
		    sizeof(f->path))
			continue;
		found = is_closed(f, deeper == 0);
		if (!found && deeper > 0 && S_ISDIR(f->st.st_mode)) {
			char inner[sizeof(f->path)];
			memcpy(inner, f->path, sizeof(inner));
			found = look_in(inner, deeper - 1, f);
		}
	}
	if (d)
		closedir(d);
	return found;
}

/* Is the directory closed, or a directory above it that cannot be entered? */
static bool
look_above(const char *dir, struct found *f)
{
	struct stat st;

	snprintf(f->path, sizeof(f->path), "%s", dir);
	while (stat(f->path, &st) != 0 && errno == EACCES && strrchr(f->path, '/') > f->path)
		*strrchr(f->path, '/') = '\0';
	return stat(f->path, &f->st) == 0 && is_closed(f, false);
}

/* The end of a path tells more than its beginning; models/ and a hash fit. */
#define PATH_SHOWN 75
#define PATH_ROOM (3 + PATH_SHOWN + 1)

static void
shorten(const char *path, char out[PATH_ROOM])
{
	size_t len = strlen(path), cut = len > PATH_SHOWN ? len - PATH_SHOWN : 0;

	snprintf(out, PATH_ROOM, "%s%.75s", cut ? "..." : "", path + cut);
}

/* Adds the finding to *why. A file should belong to the owner of the directory. */
static void
say(const char *dir, const struct found *f, struct why *why)
{
	char owner[NAME_ROOM], me[NAME_ROOM], right[NAME_ROOM], path[PATH_ROOM], what[224];
	struct why was = *why;
	struct stat st;

	shorten(f->path, path);
	user_name(f->st.st_uid, owner);
	user_name(geteuid(), me);
	if (stat(dir, &st) != 0)
		st = f->st;
	user_name(st.st_uid, right);
	if (f->st.st_uid == geteuid())
		snprintf(what, sizeof(what), "%s is yours, but its mode is %04o: chmod u+rwX it",
		    path, (unsigned)f->st.st_mode & 07777);
	else if (st.st_uid == geteuid())
		snprintf(what, sizeof(what),
		    "%s belongs to %.16s, not to %.16s: chown -R %.16s %.40s", path, owner, me, me,
		    dir);
	else
		snprintf(what, sizeof(what),
		    "%s belongs to %.16s, and this is %.16s: run it as %.16s (sudo -u %.16s)", path,
		    owner, me, right, right);
	err_set(why, ERR_DENIED, "%.*s; %s", (int)(sizeof(was.text) - strlen(what) - 3), was.text,
	    what);
}

enum err
permission_explain(const char *state_dir, enum err e, struct why *why)
{
	struct found f;

	/* What the state forbids is no question of whose files they are. */
	if (e && e != ERR_STATE && (look_above(state_dir, &f) || look_in(state_dir, 1, &f)))
		say(state_dir, &f, why);
	return e;
}
