#include <errno.h>
#include <fcntl.h>
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
#include "option.h"

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

/* Writes the archive to a new file; a file that is there is never replaced, as it may be the only copy of earlier keys. */
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

/* Reads an archive from a file, or from a pipe, so that another program may decrypt it. */
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

/* Makes and locks the directory to unpack in, so that one command runs at a time, and empties it of what a killed command left. */
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

/* Unpacks an archive; its files must be sound, of one coordinator, and of the CA that the configuration names. */
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

/* Moves the unpacked keys to keys/, holding the state directory's lock, because a coordinator reads its keys as it starts. */
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

#define KEYS_SECRET \
	"Whoever has the file can act as this coordinator. Exit codes: 0 done, 1 failed, 2 usage."

static const struct keys_verb {
	const char *name;
	int (*run)(const struct config *config, const char *file);
	struct option_usage usage;
} all[] = {
    {"export", export_keys,
	{"keys export [--config FILE] FILE|-",
	    "Puts all of keys/ into one file (tar), mode 0600, and overwrites nothing. - is "
	    "standard output:\n"
	    "rivuletd keys export - | age -r ... > keys.age\n" KEYS_SECRET,
	    1, 1}},
    {"import", import_keys,
	{"keys import [--config FILE] FILE|-",
	    "Puts such a file's keys into the state directory. It replaces no key: if another "
	    "one is there, it changes nothing.\n" KEYS_SECRET,
	    1, 1}},
    {"check", check_keys,
	{"keys check [--config FILE] FILE|-",
	    "Says whether such a file fits this coordinator's database. It changes nothing, and "
	    "also works beside a running\ncoordinator.\n" KEYS_SECRET,
	    1, 1}},
};

/* argv[0] is the verb. */
static int
keys_one(const char *path, int argc, char **argv)
{
	const struct option_entry table[] = {
	    COMMAND_CONFIG(&path), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct keys_verb *verb = all;
	struct option_words words;
	int rc;

	while (strcmp(argv[0], verb->name) != 0)
		verb++;
	if (!command_take(&words, table, &verb->usage, argc, argv, &rc))
		return rc;
	struct config *config = command_config(path);
	rc = config ? verb->run(config, words.words[0]) : COMMAND_FAILED;
	free(config);
	return rc;
}

int
cmd_keys_main(const char *path, int argc, char **argv)
{
	static const struct command_verb verbs[] = {
	    {"export", keys_one, "all of keys/ in one file (tar), mode 0600"},
	    {"import", keys_one, "put them into the state directory"},
	    {"check", keys_one, "do they fit this coordinator's database?"},
	    {NULL, NULL, NULL},
	};

	return command_verbs("keys", verbs, path, argc, argv);
}
