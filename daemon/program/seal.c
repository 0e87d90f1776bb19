#include "seal.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "confine.h"
#include "file.h"
#include "log.h"

/* Allows making sockets in the directory of the admin socket. */
static enum err
allow_socket(const struct confine *domain, const char *path, struct why *why)
{
	char dir[CONFIG_PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	char *slash = strrchr(dir, '/');
	if (!slash)
		strcpy(dir, ".");
	else
		slash[slash == dir] = '\0';
	enum err e = confine_allow(domain, dir, CONFINE_SOCKETS, why);
	/* Making the socket will say so in the words that fit. */
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
allow(const struct confine *domain, const struct config *c, struct why *why)
{
	enum err e = file_mkdirs(c->state_dir, 0700, why);

	if (!e)
		e = confine_allow(domain, c->state_dir, CONFINE_WRITE, why);
	if (!e && c->spool_path[0])
		e = file_mkdirs(c->spool_path, 0700, why);
	if (!e && c->spool_path[0])
		e = confine_allow(domain, c->spool_path, CONFINE_WRITE, why);
	if (!e && c->admin_socket[0])
		e = allow_socket(domain, c->admin_socket, why);
	return e;
}

enum err
seal_close(const struct config *c, struct why *why)
{
	struct confine domain;
	enum err e = confine_init(&domain, CONFINE_WRITES, NULL, why);

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		log_event(
		    LOG_LEVEL_WARN, "seal.open", LOG_S("why", "the process can be looked into"));
	if (e == ERR_UNSUPPORTED) {
		log_event(LOG_LEVEL_WARN, "seal.open",
		    LOG_S("why",
			"this kernel has no Landlock: file modes and systemd alone decide "
			"where this process writes"));
		return ERR_OK;
	}
	if (!e)
		e = allow(&domain, c, why);
	if (!e)
		e = confine_enter(&domain, why);
	confine_deinit(&domain);
	return e;
}
