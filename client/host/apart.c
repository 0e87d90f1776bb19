#include "apart.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fds.h"
#include "wild.h"

#define OF_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define WORK "work"
#define CACHES "trainers"
#define TEMPORARY "tmp"
#define READ_ALSO 0050 /* a directory, for its group */
#define CHANGE_ALSO 0070
#define REMEDY "; see the drop-in trainer-user.conf"
#define FIRST_FREE 64 /* above the descriptors that processes of a pool have */
#define FILES_MAX 4096 /* of a directory that are shown */
#define LOCK_TRIES 100
#define LOCK_PAUSE_MS 50
#define ANSWER_MS ((WILD_REMOVE_S + 10) * 1000)

/* Devices for calculating belong to these. */
static const char *const device_groups[] = {"video", "render", NULL};

static void
close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- the place */

/* Nobody but the superuser may put another in its place. */
static enum err
check_parent(const char *path, struct why *why)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return err_errno(why, "find %s", path);
	if (S_ISDIR(st.st_mode) && st.st_uid == 0 && (st.st_mode & 0022) == 0)
		return ERR_OK;
	return err_set(why, ERR_DENIED,
	    "%s is no directory of the superuser's that nobody else may change", path);
}

static enum err
check_own(int fd, const struct user *u, const char *path, struct why *why)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_errno(why, "stat %s", path);
	if (st.st_uid == u->before && st.st_gid == u->gid && (st.st_mode & 07777) == 0750)
		return ERR_OK;
	return err_set(why, ERR_DENIED,
	    "%s has user %u, group %u and mode %04o, and not %u, %u and 0750", path,
	    (unsigned)st.st_uid, (unsigned)st.st_gid, (unsigned)st.st_mode & 07777,
	    (unsigned)u->before, (unsigned)u->gid);
}

/* What a killed agent started is gone in a moment. */
static enum err
lock_place(int fd, const char *path, struct why *why)
{
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return ERR_OK;
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return err_set(why, ERR_EXISTS, "%s is in use: each agent needs a user of its own", path);
}

static enum err
open_place(struct apart *a, const char *parent, const char *name, struct why *why)
{
	int n = snprintf(a->place, sizeof(a->place), "%s/%s", parent, name), fd = -1;

	if (n < 0 || (size_t)n >= sizeof(a->place))
		return err_set(why, ERR_LIMIT, "path too long");
	enum err e = check_parent(parent, why);
	if (!e && (fd = open(a->place, OF_DIRECTORY)) < 0)
		e = err_errno(why, "open %s", a->place);
	if (!e)
		e = check_own(fd, &a->user, a->place, why);
	if (!e)
		e = lock_place(fd, a->place, why);
	if (!e && (a->fd = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE)) < 0)
		e = err_errno(why, "keep %s open", a->place);
	close_end(&fd);
	return e;
}

static enum err
make_folders(const struct apart *a, struct why *why)
{
	static const char *const folders[] = {WORK, CACHES};
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < sizeof(folders) / sizeof(folders[0]); i++) {
		int fd = -1;
		if (mkdirat(a->fd, folders[i], 0700) != 0 && errno != EEXIST)
			e = err_errno(why, "create %s/%s", a->place, folders[i]);
		else if ((fd = openat(a->fd, folders[i], OF_DIRECTORY)) < 0)
			e = err_errno(why, "open %s/%s", a->place, folders[i]);
		else
			e = apart_give(a, fd, false, why);
		close_end(&fd);
	}
	return e;
}

/* Whose files it can give to the other's group. */
static enum err
check_groups(const struct user *u, struct why *why)
{
	gid_t own[NGROUPS_MAX];
	int count = getgroups(NGROUPS_MAX, own);

	for (int i = 0; i < count; i++)
		if (own[i] == u->gid)
			return ERR_OK;
	return err_set(
	    why, ERR_DENIED, "the agent is not in the group %u of " APART_USER, (unsigned)u->gid);
}

enum err
apart_init(struct apart *a, struct why *why)
{
	struct why inner = {""};
	const struct passwd *self = getpwuid(getuid());
	char name[APART_NAME_MAX] = "";

	*a = (struct apart){.fd = -1, .pool = -1};
	snprintf(name, sizeof(name), "%s", self ? self->pw_name : "");
	enum err e = user_find(&a->user, APART_USER, device_groups, &inner);
	if (!e)
		e = user_check_rights(&inner);
	if (!e)
		e = check_groups(&a->user, &inner);
	if (!e && (!*name || strchr(name, '/') || *name == '.'))
		e = err_set(&inner, ERR_INVALID, "the agent's user has no name");
	if (!e)
		e = open_place(a, APART_PLACE, name, &inner);
	if (!e)
		e = make_folders(a, &inner);
	if (!e)
		return ERR_OK;
	apart_deinit(a);
	return err_set(
	    why, e, "trainers cannot have a user of their own: %.180s" REMEDY, inner.text);
}

void
apart_deinit(struct apart *a)
{
	close_end(&a->fd);
}

enum err
apart_check_home(const struct apart *a, const char *home, struct why *why)
{
	struct stat st;

	if (!a)
		return ERR_OK;
	if (stat(home, &st) != 0)
		return err_errno(why, "stat %s", home);
	if ((st.st_mode & 0077) == 0)
		return ERR_OK;
	return err_set(why, ERR_DENIED,
	    "trainers have a user of their own, and %.100s has mode %04o: chmod 700 it", home,
	    (unsigned)st.st_mode & 07777);
}

const char *
apart_base(const struct apart *a, const char *home)
{
	return a ? a->place : home;
}

/* --- what is the agent's, and the other may read */

static bool
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Of all regular files of this process's user, the mode is widened; *group: -1 leaves it. */
static enum err
widen_files(int directory, gid_t group, mode_t more, struct why *why)
{
	int own = openat(directory, ".", OF_DIRECTORY);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	struct dirent *entry;
	struct stat st;
	enum err e = d ? ERR_OK : err_errno(why, "list a directory");

	if (!d)
		close_end(&own);
	for (unsigned n = 0; d && !e && n < FILES_MAX && (entry = readdir(d)); n++) {
		int fd = is_dots(entry->d_name)
		    ? -1
		    : openat(directory, entry->d_name,
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		    st.st_uid == geteuid() &&
		    (fchown(fd, (uid_t)-1, group) != 0 ||
			fchmod(fd, (st.st_mode & 0777) | more) != 0))
			e = err_errno(why, "give a file to a group");
		close_end(&fd);
	}
	if (d)
		closedir(d);
	return e;
}

enum err
apart_give(const struct apart *a, int directory, bool change, struct why *why)
{
	if (!a)
		return ERR_OK;
	enum err e = widen_files(directory, a->user.gid, change ? 0060 : 0040, why);
	if (!e &&
	    (fchown(directory, (uid_t)-1, a->user.gid) != 0 ||
		fchmod(directory, 0700 | (change ? CHANGE_ALSO : READ_ALSO)) != 0))
		e = err_errno(why, "give a directory to " APART_USER);
	return e;
}

enum err
apart_give_path(const struct apart *a, const char *directory, bool change, struct why *why)
{
	if (!a)
		return ERR_OK;
	int fd = open(directory, OF_DIRECTORY);
	enum err e = fd < 0 ? err_errno(why, "open %s", directory) : apart_give(a, fd, change, why);
	close_end(&fd);
	return e;
}

/* --- what is asked for */

/* Waits no longer than the other side may work; nobody answers where it was ended. */
static enum err
ask(const struct apart *a, const struct apart_ask *ask, struct why *why)
{
	int ends[2], answer = ERR_CLOSED;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_errno(why, "socketpair");
	enum err e = fds_send(a->pool, ask, sizeof(*ask), &ends[1], 1);
	close(ends[1]);
	struct pollfd p = {.fd = ends[0], .events = POLLIN};
	if (!e && poll(&p, 1, ANSWER_MS) != 1)
		e = ERR_TIMEOUT;
	if (!e && recv(ends[0], &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
		answer = ERR_CLOSED;
	close(ends[0]);
	if (!e)
		e = answer >= 0 && answer < ERR_COUNT ? (enum err)answer : ERR_IO;
	return e ? err_set(why, e, "as " APART_USER ", in %.100s: %s", ask->name, err_name(e))
		 : ERR_OK;
}

static bool
take_name(char out[APART_NAME_MAX], const char *from, size_t len)
{
	if (len == 0 || len >= APART_NAME_MAX)
		return false;
	memcpy(out, from, len);
	out[len] = '\0';
	return true;
}

/* Of a path below work/, one name or two. */
static enum err
ask_about(const struct apart *a, enum apart_verb verb, const char *directory, struct why *why)
{
	struct apart_ask about = {.verb = verb};
	size_t len = strlen(a->place);

	if (strncmp(directory, a->place, len) != 0 ||
	    strncmp(directory + len, "/" WORK "/", sizeof(WORK) + 1) != 0)
		return err_set(why, ERR_INVALID, "%.200s is not below %.40s", directory, a->place);
	const char *name = directory + len + sizeof(WORK) + 1;
	const char *slash = strchr(name, '/');
	if (!take_name(about.name, name, slash ? (size_t)(slash - name) : strlen(name)) ||
	    (slash && !take_name(about.below, slash + 1, strlen(slash + 1))))
		return err_set(why, ERR_LIMIT, "path too long");
	return ask(a, &about, why);
}

enum err
apart_empty(const struct apart *a, const char *directory, struct why *why)
{
	return a ? ask_about(a, APART_EMPTY, directory, why) : ERR_OK;
}

enum err
apart_show(const struct apart *a, const char *directory, struct why *why)
{
	return a ? ask_about(a, APART_SHOW, directory, why) : ERR_OK;
}

enum err
apart_cache(const struct apart *a, const char *trainer, struct why *why)
{
	struct apart_ask about = {.verb = APART_CACHE};

	if (!a)
		return ERR_OK;
	if (!take_name(about.name, trainer, strlen(trainer)))
		return err_set(why, ERR_LIMIT, "name too long");
	return ask(a, &about, why);
}

/* --- the other side: whatever it was asked, it is the other user by now */

static bool
is_name(const char name[APART_NAME_MAX])
{
	return memchr(name, '\0', APART_NAME_MAX) && *name && *name != '.' && !strchr(name, '/');
}

/* *fd is -1 where there is none. */
static enum err
open_below(int *fd, const struct apart *a, const struct apart_ask *ask)
{
	char folder[PATH_MAX + 16];
	bool cache = ask->verb == APART_CACHE;

	*fd = -1;
	if (!is_name(ask->name) || (*ask->below && (cache || !is_name(ask->below))))
		return ERR_INVALID;
	snprintf(folder, sizeof(folder), "%s/%s", a->place, cache ? CACHES : WORK);
	int above = open(folder, OF_DIRECTORY);
	*fd = above < 0 ? -1 : openat(above, ask->name, OF_DIRECTORY);
	if (*fd >= 0 && *ask->below) {
		close_end(&above);
		above = *fd;
		*fd = openat(above, ask->below, OF_DIRECTORY);
	}
	int failed = errno;
	close_end(&above);
	return *fd >= 0 || failed == ENOENT ? ERR_OK : err_number(failed);
}

static enum err
make_temporary(int cache)
{
	int fd = -1;
	enum err e = wild_remove(cache, TEMPORARY, NULL);

	if (!e)
		e = wild_make(&fd, cache, TEMPORARY, NULL);
	close_end(&fd);
	return e;
}

static enum err
carry_out(const struct apart *a, const struct apart_ask *ask)
{
	int fd;
	enum err e = open_below(&fd, a, ask);

	if (e || fd < 0)
		return e;
	switch (ask->verb) {
	case APART_EMPTY:
		e = wild_empty(fd, NULL);
		break;
	case APART_SHOW:
		e = widen_files(fd, (gid_t)-1, 0040, NULL);
		break;
	case APART_CACHE:
		e = make_temporary(fd);
		break;
	default:
		e = ERR_INVALID;
	}
	close_end(&fd);
	return e;
}

_Noreturn void
apart_serve(int fd, const struct apart *a, const struct apart_ask *ask)
{
	enum err e = user_become(&a->user, NULL);

	/* Programs of the same user may stop it, and its parent ends with the agent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (!e)
		e = carry_out(a, ask);
	const int answer = (int)e;
	(void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
	_exit(0);
}
