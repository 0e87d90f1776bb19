#include "usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "archive.h"
#include "engine.h"
#include "log.h"
#include "report.h"
#include "spool.h"

/* Bytes and number of the files of a folder; one that is not there has none. */
static uint64_t
folder_bytes(const char *dir, const char *name, uint64_t *count)
{
	char path[CONFIG_PATH_MAX + 16];
	struct dirent *ent;
	struct stat st;
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	DIR *d = opendir(path);
	*count = 0;
	while (d && (ent = readdir(d))) {
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		bytes += (uint64_t)st.st_size;
		++*count;
	}
	if (d)
		closedir(d);
	return bytes;
}

static uint64_t
database_bytes(const char *dir)
{
	static const char *const names[] = {"rivulet.db", "rivulet.db-wal", "rivulet.db-shm"};
	char path[CONFIG_PATH_MAX + 32];
	struct stat st;
	uint64_t bytes = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (stat(path, &st) == 0)
			bytes += (uint64_t)st.st_size;
	}
	return bytes;
}

static struct engine_room
room_of(const struct services *s, const struct usage *u)
{
	const struct config *c = s->config;
	uint64_t keep = 0;

	if (c->keep_deltas && c->keep_deltas_bytes == 0)
		keep = UINT64_MAX;
	else if (c->keep_deltas && c->keep_deltas_bytes > u->kept)
		keep = c->keep_deltas_bytes - u->kept;
	return (struct engine_room){
	    u->total ? u->room : UINT64_MAX, keep, !spool_in_memory(s->spool)};
}

enum err
usage_read(const struct services *s, struct usage *out, struct why *why)
{
	const char *dir = s->config->state_dir;
	struct statvfs v;

	*out = (struct usage){.spool = spool_used(s->spool)};
	if (statvfs(dir, &v) != 0)
		return err_errno(why, "%s", dir);
	out->room = (uint64_t)v.f_bavail * v.f_frsize;
	out->total = (uint64_t)v.f_blocks * v.f_frsize;
	out->models = folder_bytes(dir, "models", &out->model_files);
	struct archive_report kept;
	archive_report(s->archive, &kept);
	out->kept = kept.used_bytes;
	out->database = database_bytes(dir);
	struct engine_room room = room_of(s, out);
	out->need = engine_forecast(s->engine, &room, NULL);
	return ERR_OK;
}

static bool
fits(const struct usage *u)
{
	return u->total == 0 || u->need <= u->room;
}

void
usage_json(const struct services *s, struct json *status)
{
	struct json *disk = json_object(), *forecast = json_object(), *jobs = json_array();
	struct usage u;

	if (usage_read(s, &u, NULL) == ERR_OK) {
		json_add_u64(disk, "free", u.room);
		json_add_u64(disk, "total", u.total);
		json_add_u64(disk, "models", u.models);
		json_add_u64(disk, "model_files", u.model_files);
		json_add_u64(disk, "spool", u.spool);
		json_add_u64(disk, "kept", u.kept);
		json_add_u64(disk, "database", u.database);
		json_add_u64(forecast, "bytes", u.need);
		json_add_bool(forecast, "fits", fits(&u));
		struct engine_room room = room_of(s, &u);
		(void)engine_forecast(s->engine, &room, jobs);
	}
	json_add(forecast, "jobs", jobs);
	json_add(status, "disk", disk);
	json_add(status, "forecast", forecast);
}

void
usage_watch(const struct services *s, bool *tight)
{
	struct usage u;

	if (usage_read(s, &u, NULL) || fits(&u) != *tight)
		return;
	*tight = !*tight;
	log_event(*tight ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, *tight ? "disk.forecast" : "disk.fits",
	    LOG_U("need", u.need), LOG_U("free", u.room),
	    LOG_S(
		"why", *tight ? "the jobs need more than is free; rivulet status says which" : ""));
}
