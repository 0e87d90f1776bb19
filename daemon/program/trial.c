#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"
#include "file.h"
#include "hash.h"
#include "listen.h"
#include "start.h"

/* A value of the configuration: where it is kept, and its name if no file sets it. */
struct value {
	const void *field;
	const char *name;
	size_t which; /* index of the value in a list */
};

static void
tell(const struct trial *t, struct value v, const char *what)
{
	const char *place = ini_notes_place(t->notes, v.field, v.which);
	char text[INI_PLACE_MAX + sizeof(struct why)];

	if (*place)
		snprintf(text, sizeof(text), "%s%s", place, what);
	else
		snprintf(text, sizeof(text), "%s, by default: %s", v.name, what);
	t->found(t->context, text);
}

static void
tell_errno(const struct trial *t, struct value v, const char *verb, const char *path)
{
	struct why why = {""};

	err_errno(&why, "%s %.120s", verb, path);
	tell(t, v, why.text);
}

static void
try_file(const struct trial *t, struct value v)
{
	const char *path = v.field;
	struct stat st;
	int fd = *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	if (fd < 0 && *path)
		tell_errno(t, v, "open", path);
	else if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)))
		tell(t, v, "is no file");
	if (fd >= 0)
		close(fd);
}

/* Tries a directory. A missing one is made at the start, if the nearest existing directory above it allows that. */
static void
try_directory(const struct trial *t, struct value v)
{
	char path[CONFIG_PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s", (const char *)v.field);
	while (stat(path, &st) != 0 && errno == ENOENT && strrchr(path, '/') > path)
		*strrchr(path, '/') = '\0';
	if (stat(path, &st) != 0)
		tell_errno(t, v, "look at", path);
	else if (!S_ISDIR(st.st_mode))
		tell(t, v, "is no directory");
	else if (access(path, W_OK | X_OK) != 0)
		tell_errno(t, v, "write in", path);
}

static void
try_address(const struct trial *t, struct value v, const struct config_listen *at)
{
	struct why why = {""};
	int fd;

	if (listen_tcp(at, at->port, LISTEN_FIRST, &fd, &why))
		tell(t, v, why.text);
	else
		close(fd);
}

/* Tries the admin socket's directory; the service manager makes that of the default. */
static void
try_socket(const struct trial *t)
{
	const char *path = t->config->admin_socket;
	const struct value v = {path, "[server] admin_socket", INI_LAST};
	char dir[CONFIG_PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (!*path || !*ini_notes_place(t->notes, path, INI_LAST))
		return;
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		tell(t, v, "is too long for a socket");
		return;
	}
	if (slash && slash > dir)
		*slash = '\0';
	if (slash && access(dir, W_OK | X_OK) != 0)
		tell_errno(t, v, "write in", dir);
}

static bool
is_running(const struct config *c)
{
	char path[CONFIG_PATH_MAX + 16];
	int fd = -1;

	snprintf(path, sizeof(path), "%s/lock", c->state_dir);
	if (access(path, F_OK) != 0)
		return false;
	enum err e = file_lock(path, &fd, NULL);
	if (fd >= 0)
		close(fd);
	return e == ERR_EXISTS;
}

static void
try_addresses(const struct trial *t)
{
	const struct config *c = t->config;

	for (size_t i = 0; i < c->listen_count; i++)
		try_address(
		    t, (struct value){&c->listen_count, "[server] listen", i}, &c->listen[i]);
	if (c->probe.host[0])
		try_address(
		    t, (struct value){&c->probe, "[server] probe_listen", INI_LAST}, &c->probe);
	try_socket(t);
}

static void
try_spool(const struct trial *t)
{
	const struct config *c = t->config;
	struct why why = {""};
	uint8_t secret[32];
	bool found;

	if (c->spool_path[0])
		try_directory(t, (struct value){c->spool_path, "[spool] path", INI_LAST});
	if (spool_start_secret(c, secret, &found, &why))
		tell(t, (struct value){c->spool_key_file, "[spool] key_file", INI_LAST}, why.text);
	hash_wipe(secret, sizeof(secret));
}

void
trial_run(const struct trial *t)
{
	const struct config *c = t->config;

	try_directory(t, (struct value){c->state_dir, "[server] state_dir", INI_LAST});
	if (!is_running(c))
		try_addresses(t);
	try_spool(t);
	for (size_t i = 0; i < c->data_count; i++) {
		const char *files[DATA_SOURCE_FILES];
		size_t n = data_source_files(&c->data[i].source, files);
		for (size_t k = 0; k < n; k++)
			try_file(t, (struct value){files[k], "", INI_LAST});
	}
}
