#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_inside.h"
#include "file.h"
#include "inspect.h"
#include "json.h"
#include "shown.h"

struct kind {
	const char *word;
	enum check_severity severity;
	const char *todo;
};

#define BACKUP "restore a backup"
#define REPAIR "--repair does it"

static const struct kind kinds[CHECK_KINDS] = {
    [CHECK_DATABASE_MISSING] = {"database-missing", CHECK_DAMAGE, BACKUP},
    [CHECK_DATABASE_DAMAGED] = {"database-damaged", CHECK_DAMAGE, BACKUP},
    [CHECK_DATABASE_NEWER] = {"database-newer", CHECK_DAMAGE,
	"use that rivuletd, or restore a backup from before the upgrade"},
    [CHECK_DATABASE_OLDER] = {"database-older", CHECK_NOTE, "the next start brings it forward"},
    [CHECK_LOG_DAMAGED] = {"log-damaged", CHECK_DAMAGE, BACKUP},
    [CHECK_LOG_TORN] = {"log-torn", CHECK_NOTE,
	"normal after a power cut, and then nothing is lost"},
    [CHECK_BACKUP_COPY] = {"backup-copy", CHECK_NOTE, "the next start raises the incarnation"},
    [CHECK_COPY_DIFFERS] = {"copy-differs", CHECK_DAMAGE, "use another backup"},
    [CHECK_ROW_DAMAGED] = {"row-damaged", CHECK_DAMAGE, BACKUP},
    [CHECK_ROW_UNSUMMED] = {"row-unsummed", CHECK_NOTE, "a coordinator that runs makes them"},
    [CHECK_JOB_DAMAGED] = {"job-damaged", CHECK_DAMAGE, BACKUP},
    [CHECK_ROUND_DAMAGED] = {"round-damaged", CHECK_DAMAGE, BACKUP},
    [CHECK_KEY_MISSING] = {"key-missing", CHECK_DAMAGE, "put keys/ back (rivuletd keys import)"},
    [CHECK_KEY_ELSEWHERE] = {"key-elsewhere", CHECK_NOTE, "bring keys/ when this copy is restored"},
    [CHECK_KEY_DAMAGED] = {"key-damaged", CHECK_DAMAGE, "put keys/ back (rivuletd keys import)"},
    [CHECK_KEY_MIXED] = {"key-mixed", CHECK_DAMAGE,
	"move keys/ away and put this coordinator's own back (rivuletd keys import)"},
    [CHECK_CERTIFICATE_DATE] = {"certificate-date", CHECK_WARNING,
	"set the clock, or renew it (docs/operators.md, Identity)"},
    [CHECK_MODEL_MISSING] = {"model-missing", CHECK_DAMAGE, "put the file back from a backup"},
    [CHECK_MODEL_FORGOTTEN] = {"model-forgotten", CHECK_WARNING,
	"--repair forgets this old model; no round needs it"},
    [CHECK_MODEL_DAMAGED] = {"model-damaged", CHECK_DAMAGE,
	"put the file back from a backup; --repair moves this one to damaged/"},
    [CHECK_DIFFERENCE_DAMAGED] = {"difference-damaged", CHECK_WARNING,
	"--repair moves it to damaged/; devices fetch the model whole"},
    [CHECK_STATE_MISSING] = {"optimizer-missing", CHECK_DAMAGE, "put the file back from a backup"},
    [CHECK_STATE_DAMAGED] = {"optimizer-damaged", CHECK_DAMAGE,
	"put the file back from a backup; --repair moves this one to damaged/"},
    [CHECK_DELTA_MISSING] = {"delta-missing", CHECK_DAMAGE,
	"--repair --drop-damaged-deltas takes it back and breaks the promise of its receipt"},
    [CHECK_DELTA_DAMAGED] = {"delta-damaged", CHECK_DAMAGE,
	"--repair --drop-damaged-deltas takes it back and breaks the promise of its receipt"},
    [CHECK_DELTA_UNREAD] = {"delta-unread", CHECK_NOTE, "needs the coordinator's own keys"},
    [CHECK_DELTA_AGAIN] = {"delta-again", CHECK_NOTE,
	"the spool is in memory: its device sends it again after the next start"},
    [CHECK_KEPT_DAMAGED] = {"kept-damaged", CHECK_DAMAGE,
	"its round cannot be folded again; --repair moves it to damaged/"},
    [CHECK_DELTA_DROPPED] = {"delta-dropped", CHECK_DAMAGE,
	"this device holds a receipt that is not kept: it may report to the round again"},
    [CHECK_DELTA_KEPT] = {"delta-kept", CHECK_DAMAGE,
	"taking back needs the coordinator's keys, to say so in the audit log"},
    [CHECK_AUDIT_DAMAGED] = {"audit-damaged", CHECK_DAMAGE,
	"keep the directory as evidence, and compare with a backup"},
    [CHECK_FILE_UNKNOWN] = {"file-unknown", CHECK_NOTE, "rivuletd did not make it"},
    [CHECK_FILE_ORPHAN] = {"file-orphan", CHECK_WARNING, "--repair moves it to lost/"},
    [CHECK_FILE_TEMPORARY] = {"file-temporary", CHECK_WARNING,
	"a crash left it; --repair removes it"},
    [CHECK_FILE_LOST] = {"file-lost", CHECK_WARNING,
	"its database is lost, or an older one was put back: restore the right one, or "
	"--delete-lost"},
    [CHECK_FILE_CLOSED] = {"file-closed", CHECK_DAMAGE,
	"give it to the directory's user (chown, chmod u+r), and check again"},
    [CHECK_CLOCK_DOUBTED] = {"clock-doubted", CHECK_WARNING,
	"set the clock, or start the coordinator and \"rivulet clock confirm\", or --older 0"},
    [CHECK_MODE_WIDE] = {"mode-wide", CHECK_WARNING, "chmod it; " REPAIR},
    [CHECK_OWNER_WRONG] = {"owner-wrong", CHECK_WARNING, "chown it; as root, " REPAIR},
    [CHECK_DIRECTORY_MISSING] = {"directory-missing", CHECK_WARNING, REPAIR},
};

static const char *const severities[] = {"note", "warning", "damage"};

void
check_found(
    struct check *c, enum check_kind kind, const char *where, bool repaired, const char *fmt, ...)
{
	const struct kind *k = &kinds[kind];
	char what[320], shown[CHECK_PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/* Both may hold bytes of what is damaged, and names that others gave. */
	snprintf(shown, sizeof(shown), "%s", where);
	shown_clean(shown);
	shown_clean(what);
	if (repaired)
		c->repaired++;
	else
		c->left[k->severity]++;
	if (!c->quiet)
		printf("%s %s %s: %s; %s\n", repaired ? "repaired" : severities[k->severity],
		    k->word, shown, what, repaired ? "done" : k->todo);
	struct json *f = json_object();
	json_add_string(f, "severity", severities[k->severity]);
	json_add_string(f, "kind", k->word);
	json_add_string(f, "where", shown);
	json_add_string(f, "what", what);
	json_add_string(f, "todo", k->todo);
	json_add_bool(f, "repaired", repaired);
	json_push(c->findings, f);
}

void
check_path(const struct check *c, const char *name, char out[CHECK_PATH_MAX])
{
	snprintf(out, CHECK_PATH_MAX, "%s/%s", c->dir, name);
}

bool
check_remove(const struct check *c, const char *name)
{
	char path[CHECK_PATH_MAX];

	check_path(c, name, path);
	return c->repair && unlink(path) == 0;
}

bool
check_is_closed(struct check *c, const char *name, const char *user)
{
	char path[CHECK_PATH_MAX];

	check_path(c, name, path);
	if (access(path, R_OK) == 0 || errno != EACCES)
		return false;
	check_found(c, CHECK_FILE_CLOSED, name, false,
	    "this user may not read it, so it was not checked%s%s", user ? "; needed by job " : "",
	    user ? user : "");
	return true;
}

bool
check_set_aside(const struct check *c, const char *name)
{
	char from[CHECK_PATH_MAX], dir[CHECK_PATH_MAX];

	check_path(c, name, from);
	check_path(c, "damaged", dir);
	return c->repair && file_set_aside(from, dir, NULL) == ERR_OK;
}

bool
check_lose(const struct check *c, const char *name)
{
	char from[CHECK_PATH_MAX], dir[CHECK_PATH_MAX];
	struct stat st;

	check_path(c, "spool", dir);
	/* A spool on a file system of its own. */
	bool apart = strncmp(name, "spool/", 6) == 0 && lstat(dir, &st) == 0 && S_ISLNK(st.st_mode);
	check_path(c, apart ? "spool/lost" : "lost", dir);
	check_path(c, name, from);
	return c->repair && file_set_aside(from, dir, NULL) == ERR_OK;
}

void
check_each_file(struct check *c, const char *folder,
    void (*fn)(struct check *c, const char *folder, const char *name))
{
	char path[CHECK_PATH_MAX];
	struct dirent *ent;

	check_path(c, folder, path);
	DIR *d = opendir(path);
	if (!d)
		return;
	while ((ent = readdir(d)))
		if (strcmp(ent->d_name, ".") != 0 && strcmp(ent->d_name, "..") != 0)
			fn(c, folder, ent->d_name);
	closedir(d);
}

/* Takes the directory's lock, so that no coordinator starts on it meanwhile; sets c->running if one runs. */
static enum err
take_lock(struct check *c, struct why *why)
{
	char path[CHECK_PATH_MAX];

	check_path(c, "lock", path);
	c->lock_fd = open(path, O_RDWR | O_CLOEXEC | (c->repair ? O_CREAT : 0), 0600);
	if (c->lock_fd < 0)
		return errno == ENOENT ? ERR_OK : err_errno(why, "open %s", path);
	c->running = flock(c->lock_fd, LOCK_EX | LOCK_NB) != 0;
	if (c->running && c->repair)
		return err_set(
		    why, ERR_STATE, "a coordinator uses %s: stop it before --repair", c->dir);
	return ERR_OK;
}

enum err
check_run(struct check *c, const char *dir, struct why *why)
{
	struct stat st;

	c->lock_fd = -1;
	c->findings = json_array();
	if (snprintf(c->dir, sizeof(c->dir), "%s", dir) >= (int)sizeof(c->dir))
		return err_set(why, ERR_LIMIT, "path too long: %s", dir);
	if (stat(dir, &st) != 0)
		return err_errno(why, "%s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(why, ERR_INVALID, "%s is not a directory", dir);
	enum err e = take_lock(c, why);
	if (e)
		return e;
	check_rows_run(c);
	check_keys_run(c);
	check_lost_run(c);
	check_models_run(c);
	check_spool_run(c);
	check_audit_run(c);
	check_tree_run(c);
	return ERR_OK;
}

void
check_deinit(struct check *c)
{
	store_inspect_close(c->db);
	check_rows_deinit(&c->rows);
	json_free(c->findings);
	if (c->lock_fd >= 0)
		close(c->lock_fd);
}
