#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "command.h"
#include "file.h"
#include "inspect.h"
#include "keys_archive.h"

static const char usage[] =
    "usage: rivuletd [--config FILE] keys export FILE|-   all of keys/ in one file (tar), mode "
    "0600\n"
    "       rivuletd [--config FILE] keys import FILE|-   puts them into the state directory\n"
    "       rivuletd [--config FILE] keys check FILE|-    do they fit this coordinator's "
    "database?\n"
    "export overwrites nothing; - is standard output:  rivuletd keys export - | age -r ... > "
    "keys.age\n"
    "import replaces no key: if another one is there, it changes nothing.\n"
    "check changes nothing, and also works beside a running coordinator.\n"
    "Whoever has the file can act as this coordinator.\n"
    "Exit codes: 0 done, 1 failed, 2 usage.\n";

#define DIR_ROOM (CONFIG_PATH_MAX + 32)

static bool
is_standard(const char *file)
{
	return strcmp(file, "-") == 0;
}

/* --- files and pipes */

static enum err
write_all(int fd, const char *data, size_t len, const char *file, struct why *why)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(why, "write %s", file);
		data += n;
		len -= (size_t)n;
	}
	return ERR_OK;
}

/* A file that is there is never replaced: it may be the only copy of the keys of before. */
static enum err
save(const char *file, const struct buf *archive, struct why *why)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path))
		return err_set(why, ERR_LIMIT, "path too long: %.100s", file);
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return err_set(why, ERR_EXISTS, "%s is there already: export to a new file", file);
	if (fd < 0)
		return err_errno(why, "create %s", file);
	enum err e = write_all(fd, archive->data, archive->len, file, why);
	if (!e && fsync(fd) != 0)
		e = err_errno(why, "sync %s", file);
	close(fd);
	if (!e)
		e = file_sync_dir(dirname(path), why);
	if (e)
		unlink(file);
	return e;
}

static enum err
put(const char *file, const struct buf *archive, struct why *why)
{
	if (!is_standard(file))
		return save(file, archive, why);
	if (isatty(STDOUT_FILENO))
		return err_set(why, ERR_INVALID,
		    "keys are not for a terminal: pipe them into a program that encrypts");
	return write_all(STDOUT_FILENO, archive->data, archive->len, "standard output", why);
}

static enum err
read_all(int fd, struct buf *out, const char *file, struct why *why)
{
	char piece[KEYS_FILE_MAX];
	enum err e = ERR_OK;
	ssize_t n = 1;

	while (!e && n != 0) {
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno != EINTR)
			e = err_errno(why, "read %s", file);
		else if (n > 0 && buf_append(out, piece, (size_t)n))
			e = err_set(why, ERR_LIMIT, "%s is too large for an archive of keys", file);
	}
	hash_wipe(piece, sizeof(piece));
	return e;
}

/* Also from a pipe, so that a program may decrypt it. */
static enum err
get(const char *file, struct buf *out, struct why *why)
{
	int fd = is_standard(file) ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
	void *room;

	if (fd < 0)
		return err_errno(why, "open %s", file);
	/* All of it at once: a buffer that grows leaves copies of what it held. */
	enum err e = buf_extend(out, KEYS_ARCHIVE_MAX, &room) ? ERR_NOMEM : ERR_OK;
	buf_reset(out);
	if (!e)
		e = read_all(fd, out, file, why);
	if (!is_standard(file))
		close(fd);
	return e == ERR_NOMEM ? err_set(why, e, "no memory") : e;
}

/* --- an archive, unpacked beside keys/ */

struct unpacked {
	char dir[DIR_ROOM];
	int fd; /* of dir, locked */
	struct services_ca *ca;
};

/* One at a time; what a killed one left goes. */
static enum err
open_dir(struct unpacked *u, const struct config *config, struct why *why)
{
	char keys[DIR_ROOM + 8];

	snprintf(u->dir, sizeof(u->dir), "%s/keys.unpacked", config->state_dir);
	snprintf(keys, sizeof(keys), "%s/keys", u->dir);
	enum err e = file_mkdirs(u->dir, 0700, why);
	if (e)
		return e;
	u->fd = open(u->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (u->fd < 0)
		return err_errno(why, "open %s", u->dir);
	if (flock(u->fd, LOCK_EX | LOCK_NB) != 0) {
		close(u->fd);
		u->fd = -1;
		return err_set(why, ERR_STATE, "another \"rivuletd keys\" is running");
	}
	return file_remove_dir(keys, why);
}

static enum err
compare_database(
    const struct config *config, const char *file, const struct services_ca *ca, struct why *why)
{
	char path[DIR_ROOM];
	struct why said = {""};
	struct store_db *db = NULL;
	uint64_t version;

	snprintf(path, sizeof(path), "%s/rivulet.db", config->state_dir);
	enum err e = store_inspect_open(&db, path, false, &version, why);
	if (!e && version != store_inspect_known())
		e = err_set(why, ERR_UNSUPPORTED,
		    "%s is empty, or not of this version: start this version of rivuletd once "
		    "first",
		    path);
	if (!e && (e = keys_compare_database(db, ca, true, &said)))
		err_set(why, e, "%.50s does not fit: %.190s", file, said.text);
	store_inspect_close(db);
	return e;
}

/* Sound, of one coordinator, and of the one that the configuration names. */
static enum err
unpack(struct unpacked *u, const struct config *config, const char *file, struct why *why)
{
	struct buf archive;

	buf_init(&archive, KEYS_ARCHIVE_MAX);
	enum err e = get(file, &archive, why);
	if (!e)
		e = open_dir(u, config, why);
	if (!e)
		e = keys_archive_unpack(u->dir, &archive, &u->ca, why);
	keys_archive_wipe(&archive);
	if (!e)
		e = keys_compare_pinned(u->ca, config->ca, true, why);
	struct why said = *why;
	return e ? err_set(why, e, "%.60s: %.180s", file, said.text) : ERR_OK;
}

static void
unpacked_deinit(struct unpacked *u)
{
	if (u->fd >= 0) {
		(void)!file_remove_dir(u->dir, NULL);
		close(u->fd);
	}
	keys_free_ca(u->ca);
}

static void
print_ca(FILE *to, const char *what, const struct services_ca *ca)
{
	fprintf(to, "%s generation %llu of the CA%s\n", what, (unsigned long long)ca->generation,
	    ca->rotating ? ", and the next one" : "");
	command_print_fingerprint(to, ca);
}

/* --- the three */

static int
export_keys(const struct config *config, const char *file)
{
	struct services_ca *ca = NULL;
	struct buf archive;
	struct why why = {""};

	buf_init(&archive, KEYS_ARCHIVE_MAX);
	enum err e = keys_archive_pack(config->state_dir, &archive, &why);
	if (!e)
		e = put(file, &archive, &why);
	keys_archive_wipe(&archive);
	if (!e)
		e = keys_load_ca(config->state_dir, &ca, &why);
	if (e)
		return command_fail_in(config->state_dir, &why);
	print_ca(stderr, "exported", ca);
	keys_free_ca(ca);
	return COMMAND_OK;
}

/* With the lock: a coordinator reads its keys as it starts. */
static enum err
adopt(const struct config *config, const char *file, struct unpacked *u, struct why *why)
{
	char lock[DIR_ROOM];
	size_t moved = 0;
	int fd = -1;

	snprintf(lock, sizeof(lock), "%s/lock", config->state_dir);
	enum err e = file_mkdirs(config->state_dir, 0700, why);
	if (!e)
		e = file_lock(lock, &fd, why);
	if (e == ERR_EXISTS)
		return err_set(why, e, "a coordinator uses %s: stop it first", config->state_dir);
	if (!e)
		e = file_give(lock, config->state_dir, why);
	if (!e)
		e = unpack(u, config, file, why);
	/* A database that comes later, or cannot be read now, is compared by restore and start. */
	if (!e && (e = compare_database(config, file, u->ca, why)) != ERR_DENIED)
		e = ERR_OK;
	if (!e && (e = keys_archive_adopt(u->dir, config->state_dir, &moved, why)) == ERR_EXISTS) {
		struct why other = *why;
		err_set(why, e, "%.150s: move keys/ away first; nothing was changed", other.text);
	}
	if (!e)
		printf("files put into %s/keys: %zu\n", config->state_dir, moved);
	if (fd >= 0)
		close(fd);
	return e;
}

static int
import_keys(const struct config *config, const char *file)
{
	struct unpacked u = {.fd = -1};
	struct why why = {""};

	enum err e = adopt(config, file, &u, &why);
	if (!e)
		print_ca(stdout, "imported", u.ca);
	unpacked_deinit(&u);
	return e ? command_fail_in(config->state_dir, &why) : COMMAND_OK;
}

static int
check_keys(const struct config *config, const char *file)
{
	struct unpacked u = {.fd = -1};
	struct why why = {""}, differs = {""};

	enum err e = unpack(&u, config, file, &why);
	if (!e)
		e = compare_database(config, file, u.ca, &why);
	if (!e) {
		print_ca(stdout, "complete, and of this coordinator:", u.ca);
		if (keys_archive_compare(u.dir, config->state_dir, &differs))
			printf("%s: export again\n", differs.text);
	}
	unpacked_deinit(&u);
	return e ? command_fail_in(config->state_dir, &why) : COMMAND_OK;
}

int
cmd_keys_main(const char *path, int argc, char **argv)
{
	static const struct option table[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	static const struct {
		const char *name;
		int (*run)(const struct config *config, const char *file);
	} all[] = {{"export", export_keys}, {"import", import_keys}, {"check", check_keys}};
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		fputs(usage, c == 'h' ? stdout : stderr);
		return c == 'h' ? COMMAND_OK : COMMAND_USAGE;
	}
	for (size_t i = 0; argc - optind == 2 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[optind], all[i].name) != 0)
			continue;
		struct config *config = command_config(path);
		int rc = config ? all[i].run(config, argv[optind + 1]) : COMMAND_FAILED;
		free(config);
		return rc;
	}
	fputs(usage, stderr);
	return COMMAND_USAGE;
}
