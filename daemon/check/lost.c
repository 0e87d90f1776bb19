#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "age.h"
#include "check_inside.h"
#include "clock.h"
#include "delta_file.h"
#include "hex.h"

#define NAME_ROOM 320

/* out: the job and the device of a lost file, if its head can be read. */
static void
describe(const struct check *c, const char *path, char *out, size_t room)
{
	char job[33], device[65];
	struct delta_file f;
	struct manifest m;

	snprintf(out, room, "no row explains it");
	if (!strstr(path, ".delta.") || delta_file_open(&f, path, O_RDONLY, c->key, NULL))
		return;
	if (manifest_decode(&m, f.manifest, MANIFEST_LEN, NULL) == ERR_OK) {
		hex_encode(job, m.job, sizeof(m.job));
		hex_encode(device, m.device, sizeof(m.device));
		snprintf(out, room,
		    "no row explains this delta of device %.16s, job %s, round %llu", device, job,
		    (unsigned long long)m.round);
	}
	delta_file_close(&f);
}

static bool
is_due(const struct check *c, const struct stat *st)
{
	return c->delete_lost && clock_wall() - (double)st->st_mtime >= (double)c->older_s;
}

/* May ages be judged by this clock? With older_s 0 files are removed whatever their age, and the clock does not matter. */
static bool
is_believed(struct check *c)
{
	enum age_doubt doubt = AGE_LATER;

	if (!c->delete_lost || c->older_s == 0)
		return true;
	if (!c->db)
		check_found(c, CHECK_CLOCK_DOUBTED, "lost", false,
		    "without a database nobody knows whether the clock is right: nothing is "
		    "removed for "
		    "its age");
	else if (age_of_database(c->db, &doubt) || doubt)
		check_found(c, CHECK_CLOCK_DOUBTED, "lost", false,
		    "the clock is not where the database says (%s): nothing is removed for its age",
		    age_doubt_name(doubt));
	return c->db && !doubt;
}

static void
judge_lost(struct check *c, const char *folder, const char *base)
{
	char name[NAME_ROOM], path[CHECK_PATH_MAX], what[160];
	struct stat st;

	snprintf(name, sizeof(name), "%s/%s", folder, base);
	check_path(c, name, path);
	if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return;
	describe(c, path, what, sizeof(what));
	check_found(c, CHECK_FILE_LOST, name, is_due(c, &st) && unlink(path) == 0, "%s", what);
}

void
check_lost_run(struct check *c)
{
	const bool asked = c->delete_lost;

	c->delete_lost = asked && is_believed(c);
	check_each_file(c, "lost", judge_lost);
	check_each_file(c, "spool/lost", judge_lost);
	c->delete_lost = asked;
}
