#include "program_sandbox.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "confine.h"
#include "data_source.h"
#include "err.h"
#include "file.h"
#include "identity.h"
#include "settings.h"
#include "wild.h"

#define CACHES "trainers"
#define TEMPORARY "tmp" /* of a cache */
#define WORDS_MAX 64
#define DEVICES "/dev"
#define DEFAULT_PATH "/usr/bin:/bin"

static const struct spawner_path everywhere[] = {
    {"/usr", CONFINE_READ},
    {"/lib", CONFINE_READ},
    {"/lib32", CONFINE_READ},
    {"/lib64", CONFINE_READ},
    {"/libx32", CONFINE_READ},
    {"/bin", CONFINE_READ},
    {"/sbin", CONFINE_READ},
    {"/etc", CONFINE_READ},
    {"/opt", CONFINE_READ},
    {"/proc", CONFINE_READ},
    {"/sys", CONFINE_READ},
    {"/run", CONFINE_READ},
    {"/dev/shm", CONFINE_READ | CONFINE_WRITE},
};

/* Of the agent's environment; LC_ and what begins so, too. */
static const char *const variables[] = {"PATH", "LD_LIBRARY_PATH", "LANG", "LANGUAGE", "TZ", "TERM",
    "USER", "LOGNAME", "SHELL", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};

/* Entries of a home that are the agent's; files whose names begin with "key." are, too. */
static const char *const own[] = {"cert.pem", "ca.pem", "device.json", "signer.pem",
    "identity.next", "rotate", "rotate.failed", "last", "lock", "transferred", "rivulet.conf",
    "models", "outbox", "local", "residual", "variates", "work", "examples", CACHES};

/* --- paths */

static void
add_path(struct program_sandbox *c, const char *path, unsigned access)
{
	struct spawner_path *more = realloc(c->paths, (c->path_count + 1) * sizeof(*more));

	if (!more) {
		c->failed = true;
		return;
	}
	c->paths = more;
	more[c->path_count] = (struct spawner_path){strdup(path), access};
	if (more[c->path_count].path)
		c->path_count++;
	else
		c->failed = true;
}

/* Is the path the home, or one of the agent's own entries in it? The path is resolved. */
static bool
is_own(const struct program_sandbox *c, const char *path)
{
	size_t len = strlen(c->home);

	if (len == 0 || strncmp(path, c->home, len) != 0 || (path[len] && path[len] != '/'))
		return false;
	if (!path[len] || strncmp(path + len, "/key.", 5) == 0)
		return true;
	const char *entry = path + len + 1;
	size_t n = strcspn(entry, "/");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strlen(own[i]) == n && memcmp(own[i], entry, n) == 0)
			return true;
	return false;
}

/* Adds a path that the owner names; a path that does not exist (yet) is passed over. False if the path is the agent's own. */
static bool
add_named(struct program_sandbox *c, const char *path, unsigned access)
{
	char *full = realpath(path, NULL);
	bool good = !full || !is_own(c, full);

	if (full && good)
		add_path(c, full, access);
	free(full);
	return good;
}

static enum err
add_list(
    struct program_sandbox *c, const char *key, const char *list, unsigned access, struct why *why)
{
	char words[SETTINGS_WORDS_MAX];
	const char *path[WORDS_MAX];

	if (!*list)
		return ERR_OK;
	snprintf(words, sizeof(words), "%s", list);
	if (child_split(words, path, WORDS_MAX))
		return err_set(
		    why, ERR_INVALID, "%s cannot be split into words: %.150s", key, list);
	for (size_t i = 0; path[i]; i++) {
		if (path[i][0] != '/')
			return err_set(
			    why, ERR_INVALID, "%s: %.150s does not begin with /", key, path[i]);
		if (!add_named(c, path[i], access))
			return err_set(
			    why, ERR_DENIED, "%s: %.150s is the agent's own", key, path[i]);
	}
	return ERR_OK;
}

/* Adds the directory of a program's file, or the one above a "bin": /srv/venv for /srv/venv/bin/python. Never the root directory. */
static void
add_tree(struct program_sandbox *c, const char *file)
{
	char tree[PATH_MAX];
	struct stat st;

	snprintf(tree, sizeof(tree), "%s", file);
	char *slash = strrchr(tree, '/');
	bool is_dir = stat(file, &st) == 0 && S_ISDIR(st.st_mode);
	if (!is_dir && slash && slash > tree) {
		*slash = '\0';
		slash = strrchr(tree, '/');
		if (slash > tree && strcmp(slash, "/bin") == 0)
			*slash = '\0';
	}
	/* The file alone, where its directory is the home. */
	if (!add_named(c, tree, CONFINE_READ))
		(void)!add_named(c, file, CONFINE_READ);
}

/* Adds the program as it is found, and files among its words: a script, say, or the program that mpirun is to start. Each by its name and
 * by the resolved name, because a virtual environment's python is a link. */
static void
add_program(struct program_sandbox *c, const char *const *argv, const char *path)
{
	char found[PATH_MAX];

	for (size_t i = 0; argv[i]; i++) {
		bool there =
		    i == 0 ? program_sandbox_find(found, argv[0], path) : argv[i][0] == '/';
		char *full = there ? realpath(i == 0 ? found : argv[i], NULL) : NULL;
		if (full) {
			add_tree(c, i == 0 ? found : argv[i]);
			add_tree(c, full);
		}
		free(full);
	}
}

static void
add_data(struct program_sandbox *c, const struct settings_data *d)
{
	const char *files[DATA_SOURCE_FILES];
	size_t n = data_source_files(&d->source, files);

	for (size_t i = 0; i < n; i++)
		(void)!add_named(c, files[i], CONFINE_READ);
}

/* Is the device a whole disk, through which a program with the right to it could read every file? */
static bool
is_disk(const char *name)
{
	static const char *const folders[] = {"block", "bsg", "disk", "mapper"};
	struct stat st;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (strcmp(name, folders[i]) == 0)
			return true;
	snprintf(path, sizeof(path), DEVICES "/%.255s", name);
	return strncmp(name, "sg", 2) == 0 || stat(path, &st) != 0 || S_ISBLK(st.st_mode);
}

/* Adds the devices. For the superuser, who may open any, all but disks are added one by one. */
static void
add_devices(struct program_sandbox *c)
{
	DIR *d = geteuid() == 0 ? opendir(DEVICES) : NULL;
	struct dirent *entry;
	char path[PATH_MAX];

	if (!d)
		add_path(c, DEVICES, CONFINE_DEVICES);
	while (d && (entry = readdir(d))) {
		if (entry->d_name[0] == '.' || is_disk(entry->d_name))
			continue;
		snprintf(path, sizeof(path), DEVICES "/%.255s", entry->d_name);
		add_path(c, path, CONFINE_DEVICES);
	}
	if (d)
		closedir(d);
}

/* --- the environment */

/* "NAME=value", in place of one of that name. */
static void
set_variable(struct program_sandbox *c, const char *text)
{
	size_t name = strcspn(text, "=") + 1, i = 0;
	char *copy = strdup(text);

	while (i < c->variables && strncmp(c->environment[i], text, name) != 0)
		i++;
	char **more = i < c->variables
	    ? c->environment
	    : realloc(c->environment, (c->variables + 2) * sizeof(*more));
	if (more)
		c->environment = more;
	if (!more || !copy) {
		free(copy);
		c->failed = true;
		return;
	}
	if (i < c->variables)
		free(more[i]);
	else
		more[++c->variables] = NULL;
	more[i] = copy;
}

static void
set_value(struct program_sandbox *c, const char *name, const char *value)
{
	char *text = NULL;

	if (asprintf(&text, "%s=%s", name, value) < 0)
		text = NULL;
	if (text)
		set_variable(c, text);
	else
		c->failed = true;
	free(text);
}

static void
set_inherited(struct program_sandbox *c)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (getenv(variables[i]))
			set_value(c, variables[i], getenv(variables[i]));
	for (char **v = environ; *v; v++)
		if (strncmp(*v, "LC_", 3) == 0)
			set_variable(c, *v);
}

static enum err
set_owners(struct program_sandbox *c, const char *list, struct why *why)
{
	char words[SETTINGS_WORDS_MAX];
	const char *variable[WORDS_MAX];

	if (!*list)
		return ERR_OK;
	snprintf(words, sizeof(words), "%s", list);
	if (child_split(words, variable, WORDS_MAX))
		return err_set(why, ERR_INVALID, "env cannot be split into words: %.150s", list);
	for (size_t i = 0; variable[i]; i++) {
		if (strchr(variable[i], '='))
			set_variable(c, variable[i]);
		else if (getenv(variable[i]))
			set_value(c, variable[i], getenv(variable[i]));
	}
	return ERR_OK;
}

static const char *
variable(const struct program_sandbox *c, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < c->variables; i++)
		if (strncmp(c->environment[i], name, len) == 0 && c->environment[i][len] == '=')
			return c->environment[i] + len + 1;
	return NULL;
}

/* --- the cache */

static enum err
cache_path(char out[PATH_MAX], const char *home, const char *trainer, struct why *why)
{
	char caches[PATH_MAX];
	enum err e = identity_path(caches, home, CACHES, why);

	return e ? e : identity_path(out, caches, trainer, why);
}

enum err
program_sandbox_prepare(
    const struct apart *apart, const char *home, const char *trainer, struct why *why)
{
	char cache[PATH_MAX];
	int fd, temporary = -1;
	enum err e = cache_path(cache, apart_base(apart, home), trainer, why);

	if (!e)
		e = file_mkdirs(cache, 0700, why);
	if (!e && apart) {
		e = apart_give_path(apart, cache, true, why);
		return e ? e : apart_cache(apart, trainer, why);
	}
	if (!e)
		e = wild_directory(&fd, cache, why);
	if (e)
		return e;
	e = wild_remove(fd, TEMPORARY, why);
	if (!e)
		e = wild_make(&temporary, fd, TEMPORARY, why);
	if (temporary >= 0)
		close(temporary);
	close(fd);
	return e;
}

/* Adds the trainer's cache, which is missing if a program is only asked what it can. */
static enum err
use_cache(struct program_sandbox *c, const struct program_sandbox_options *o, struct why *why)
{
	char cache[PATH_MAX], temporary[PATH_MAX];
	enum err e = cache_path(cache, apart_base(o->apart, c->home), o->trainer->name, why);

	if (!e)
		e = identity_path(temporary, cache, TEMPORARY, why);
	if (e || access(temporary, o->apart ? F_OK : W_OK) != 0)
		return e;
	add_path(c, cache, CONFINE_READ | CONFINE_WRITE);
	set_value(c, "HOME", cache);
	set_value(c, "XDG_CACHE_HOME", cache);
	set_value(c, "TMPDIR", temporary);
	return ERR_OK;
}

/* --- */

static enum err
use_home(struct program_sandbox *c, const struct program_sandbox_options *o, struct why *why)
{
	char *full = realpath(o->home, NULL);

	if (!full)
		return err_errno(why, "find %s", o->home);
	snprintf(c->home, sizeof(c->home), "%s", full);
	free(full);
	return use_cache(c, o, why);
}

static enum err
fill_environment(
    struct program_sandbox *c, const struct program_sandbox_options *o, struct why *why)
{
	char threads[24];

	set_inherited(c);
	if (o->apart) {
		set_value(c, "USER", APART_USER);
		set_value(c, "LOGNAME", APART_USER);
	}
	if (o->threads) {
		snprintf(threads, sizeof(threads), "%llu", (unsigned long long)o->threads);
		set_value(c, "OMP_NUM_THREADS", threads);
	}
	enum err e = o->home ? use_home(c, o, why) : ERR_OK;
	if (!e)
		e = set_owners(c, o->trainer->environment, why);
	for (size_t i = 0; !e && o->more && o->more[i]; i++)
		set_variable(c, o->more[i]);
	return e;
}

static enum err
fill_paths(struct program_sandbox *c, const struct program_sandbox_options *o, struct why *why)
{
	for (size_t i = 0; i < sizeof(everywhere) / sizeof(everywhere[0]); i++)
		add_path(c, everywhere[i].path, everywhere[i].access);
	add_devices(c);
	/* Nothing comes from the cache into it, which may hold links. The agent works there while a program that stays is alive. */
	if (o->directory)
		add_path(c, o->directory,
		    CONFINE_READ | CONFINE_WRITE | CONFINE_NO_MOVES |
			(o->trainer->persistent ? CONFINE_NO_LINKS : 0));
	if (o->given)
		add_path(c, o->given, CONFINE_READ);
	if (o->data)
		add_data(c, o->data);
	add_program(c, o->argv, variable(c, "PATH"));
	enum err e = add_list(c, "read", o->trainer->read, CONFINE_READ, why);
	return e ? e : add_list(c, "write", o->trainer->write, CONFINE_READ | CONFINE_WRITE, why);
}

static void
drop_paths(struct program_sandbox *c)
{
	for (size_t i = 0; i < c->path_count; i++)
		free((void *)(size_t)c->paths[i].path);
	free(c->paths);
	c->paths = NULL;
	c->path_count = 0;
}

enum err
program_sandbox_init(
    struct program_sandbox *c, const struct program_sandbox_options *o, struct why *why)
{
	memset(c, 0, sizeof(*c));
	enum err e = fill_environment(c, o, why);
	if (!e)
		e = fill_paths(c, o, why);
	if (!e && c->failed)
		e = err_set(why, ERR_NOMEM, "no memory to confine a trainer");
	if (e)
		program_sandbox_deinit(c);
	else if (o->trainer->free)
		drop_paths(c);
	return e;
}

void
program_sandbox_deinit(struct program_sandbox *c)
{
	drop_paths(c);
	for (size_t i = 0; i < c->variables; i++)
		free(c->environment[i]);
	free(c->environment);
	memset(c, 0, sizeof(*c));
}

const char *
program_sandbox_above_home(const struct program_sandbox *c)
{
	for (size_t i = 0; i < c->path_count; i++) {
		size_t len = strlen(c->paths[i].path);
		if (strncmp(c->home, c->paths[i].path, len) == 0 && c->home[len] == '/')
			return c->paths[i].path;
	}
	return NULL;
}

bool
program_sandbox_find(char out[PATH_MAX], const char *program, const char *path)
{
	if (strchr(program, '/')) {
		snprintf(out, PATH_MAX, "%s", program);
		return access(program, X_OK) == 0;
	}
	for (const char *p = path ? path : DEFAULT_PATH; *p;) {
		size_t len = strcspn(p, ":");
		int n = snprintf(out, PATH_MAX, "%.*s/%s", (int)len, p, program);
		if (n > 0 && n < PATH_MAX && access(out, X_OK) == 0)
			return true;
		p += len + (p[len] == ':');
	}
	return false;
}
