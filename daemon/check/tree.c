#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_inside.h"
#include "file.h"
#include "list.h"
#include "num.h"
#include "store.h"

#define NAME_ROOM 320

static const char *const folders[] = {"keys", "models", "spool", "kept"};
static const char *const files[] = {"rivulet.db", "rivulet.db-wal", "rivulet.db-shm", "lock",
    "port", "probe_port", "reserve", BACKUP_LIST_NAME};
static const char *const ports[] = {"port", "probe_port"};

static bool
is_in(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

/* --- permissions and owners */

struct owner {
	uid_t uid;
	gid_t gid;
};

static struct owner
owner_of(const struct check *c)
{
	struct stat st;

	return stat(c->dir, &st) == 0 ? (struct owner){st.st_uid, st.st_gid}
				      : (struct owner){geteuid(), getegid()};
}

/* The mode that a file may have: certificates and ports may be read by all, the directory itself by its group (tmpfiles.d sets that). */
static mode_t
allowed(const char *name)
{
	size_t len = strlen(name);

	if (*name == '\0')
		return 0755;
	if (is_in(name, ports, 2) || (len > 4 && strcmp(name + len - 4, ".crt") == 0))
		return 0644;
	return 0700;
}

static void
judge_access(struct check *c, const char *name)
{
	struct owner owner = owner_of(c);
	char path[CHECK_PATH_MAX];
	struct stat st;

	check_path(c, name, path);
	if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode))
		return;
	mode_t most = allowed(name) | (S_ISDIR(st.st_mode) ? 0700 : 0600);
	const char *shown = *name ? name : ".";
	bool key = strncmp(name, "keys/", 5) == 0; /* judged with the keys */
	if (!key && (st.st_mode & 0777 & ~most) != 0) {
		bool done = c->repair && chmod(path, st.st_mode & most) == 0;
		check_found(c, CHECK_MODE_WIDE, shown, done,
		    "others than its owner may use it (mode %03o)", (unsigned)(st.st_mode & 0777));
	}
	if (st.st_uid != owner.uid) {
		/* A second name of somebody else's file is not given away. */
		bool ours = S_ISDIR(st.st_mode) || st.st_nlink == 1;
		bool done = c->repair && ours && lchown(path, owner.uid, owner.gid) == 0;
		check_found(c, CHECK_OWNER_WRONG, shown, done,
		    "it belongs to user %u, the directory to %u", (unsigned)st.st_uid,
		    (unsigned)owner.uid);
	}
}

static void
judge_member(struct check *c, const char *folder, const char *base)
{
	char name[NAME_ROOM];

	snprintf(name, sizeof(name), "%s/%s", folder, base);
	judge_access(c, name);
}

/* --- what lies there */

/* base/os/file's temporary names end in a dot and six characters. */
static bool
is_temporary(const char *base)
{
	static const char unfinished[] = "rivulet.db" STORE_UNFINISHED;
	size_t len = strlen(base);

	if (strncmp(base, unfinished, sizeof(unfinished) - 1) == 0)
		return true;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t n = strlen(files[i]);
		if (len == n + 7 && strncmp(base, files[i], n) == 0 && base[n] == '.')
			return true;
	}
	return false;
}

/* Folders in which a command works, and which it locks meanwhile. */
static const struct {
	const char *name, *what;
} workplaces[] = {
    {"backup.links", "a backup was not finished"},
    {"keys.unpacked", "an import or a check of keys was not finished"},
};

/* Removes the folder of a command that does not run any more. */
static bool
judge_workplace(struct check *c, const char *base)
{
	char path[CHECK_PATH_MAX];
	size_t i = 0;

	while (i < 2 && strcmp(base, workplaces[i].name) != 0)
		i++;
	if (i == 2)
		return false;
	check_path(c, base, path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		check_found(c, CHECK_FILE_TEMPORARY, base,
		    c->repair && file_remove_dir(path, NULL) == ERR_OK, "%s", workplaces[i].what);
	if (fd >= 0)
		close(fd);
	return true;
}

static void
judge_entry(struct check *c, const char *folder, const char *base)
{
	(void)folder;
	judge_access(c, base);
	if (is_in(base, files, sizeof(files) / sizeof(files[0])) ||
	    is_in(base, folders, sizeof(folders) / sizeof(folders[0])) ||
	    strcmp(base, "damaged") == 0 || strcmp(base, "lost") == 0 || judge_workplace(c, base))
		return;
	if (is_temporary(base) && !c->running)
		/* Without a database it is the mark that lets init go on. */
		check_found(c, CHECK_FILE_TEMPORARY, base, c->db && check_remove(c, base),
		    "it was never finished");
	else if (!is_temporary(base))
		check_found(
		    c, CHECK_FILE_UNKNOWN, base, false, "it is not part of a state directory");
}

static void
judge_folders(struct check *c)
{
	char path[CHECK_PATH_MAX];
	struct stat st;

	/* keys/ cannot be made again here, and kept/ comes when it is needed. */
	for (size_t i = 1; i < 3; i++) {
		check_path(c, folders[i], path);
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			continue;
		check_found(c, CHECK_DIRECTORY_MISSING, folders[i],
		    c->repair && mkdir(path, 0700) == 0, "there is no such directory");
	}
}

static void
judge_port(struct check *c, const char *name)
{
	char path[CHECK_PATH_MAX];
	char *text = NULL;
	uint64_t port;
	size_t len;

	check_path(c, name, path);
	if (file_read(path, 16, &text, &len, NULL))
		return;
	if (len > 0 && text[len - 1] == '\n')
		text[len - 1] = '\0';
	if (!num_u64(text, 65535, &port) || port == 0)
		check_found(c, CHECK_FILE_TEMPORARY, name, !c->running && check_remove(c, name),
		    "it does not hold a port");
	free(text);
}

/* --- a copy that was not started yet */

static void
copy_differs(void *ctx, const char *name, const char *what)
{
	check_found(ctx, CHECK_COPY_DIFFERS, name, false, "%s", what);
}

static void
judge_copy(struct check *c)
{
	struct why why = {""};

	enum err e = backup_list_verify(c->dir, copy_differs, c, &why);
	if (e && e != ERR_NOTFOUND)
		check_found(c, CHECK_COPY_DIFFERS, BACKUP_LIST_NAME, false, "%s", why.text);
}

void
check_tree_run(struct check *c)
{
	judge_folders(c);
	judge_access(c, "");
	check_each_file(c, "", judge_entry);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		check_each_file(c, folders[i], judge_member);
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		judge_port(c, ports[i]);
	judge_copy(c);
}
