#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apart.h"
#include "capabilities.h"
#include "cgroup.h"
#include "clock.h"
#include "cmd.h"
#include "confine.h"
#include "data.h"
#include "doctor.h"
#include "err.h"
#include "file.h"
#include "home.h"
#include "machine.h"
#include "outbox.h"
#include "program.h"
#include "sandbox.h"
#include "trainer_offer.h"
#include "wait_reason.h"

#define OLD_S 86400
#define LEAST_FREE (64u << 20)
#define MIB 1048576.0

static void
check_data(struct cmd_doctor *d, const struct settings_data *s)
{
	struct dataset set = {0};
	struct why why = {""};
	enum err e = data_guard(d->settings, s, &why);

	if (!e)
		e = data_load(&set, s, &why);
	if (e)
		cmd_doctor_add(d, "data", CMD_DOCTOR_FAULT,
		    e == ERR_NOTFOUND ? CMD_NOT_FOUND : CMD_SETTINGS,
		    "jobs on this data are not done here; fix the file or [data] in rivulet.conf",
		    "%s[data %s] does not load: %s", settings_data_place(d->settings, s), s->name,
		    why.text);
	else if (set.count == 0)
		cmd_doctor_add(d, "data", CMD_DOCTOR_WARNING, CMD_SETTINGS,
		    "is its shard too small?", "[data %s] has no examples", s->name);
	else
		cmd_doctor_add(d, "data", CMD_DOCTOR_FINE, 0, NULL, "[data %s]: %llu examples",
		    s->name, (unsigned long long)set.count);
	if (!e)
		dataset_deinit(&set);
}

/* As the agent asks it at its start. */
static void
check_offer(struct cmd_doctor *d)
{
	struct capabilities c;
	struct why why = {""};

	if (trainer_offer_ask(
		&c, &(struct trainer_offer){.settings = d->settings, .home = d->home}, &why))
		cmd_doctor_add(d, "trainer", CMD_DOCTOR_FAULT, CMD_SETTINGS,
		    "built-in jobs are not done here; fix it, or take it out of rivulet.conf",
		    "[trainer " RECIPE_BUILTIN "] offers nothing: %s", why.text);
	else
		cmd_doctor_add(d, "trainer", CMD_DOCTOR_FINE, 0, NULL,
		    "[trainer " RECIPE_BUILTIN "] offers %zu layers and %zu features",
		    c.layer_count, c.feature_count);
}

static void
check_trainer(struct cmd_doctor *d, const struct settings_trainer *t)
{
	struct why why = {""};
	char above[PATH_MAX];
	enum err e = program_try(d->settings, t, d->home, above, &why);

	if (e) {
		cmd_doctor_add(d, "trainer", CMD_DOCTOR_FAULT,
		    e == ERR_NOTFOUND ? CMD_NOT_FOUND : CMD_SETTINGS,
		    e == ERR_NOTFOUND
			? "install it, let the agent's user read or run it, or fix exec in "
			  "rivulet.conf"
			: "fix it in rivulet.conf: close quotes, name whole paths",
		    "%s", why.text);
		return;
	}
	cmd_doctor_add(
	    d, "trainer", CMD_DOCTOR_FINE, 0, NULL, "[trainer %s]: %.150s", t->name, t->exec);
	if (*above)
		cmd_doctor_add(d, "trainer", CMD_DOCTOR_NOTE, 0, NULL,
		    "[trainer %s] cannot list %.100s, for this home lies in it: Python imports no "
		    "module from there, but from a directory in it",
		    t->name, above);
	if (t == settings_find_trainer(d->settings, RECIPE_BUILTIN))
		check_offer(d);
}

/* How far what the agent does for programs of the owner holds on this machine. */
static void
check_landlock(struct cmd_doctor *d)
{
	int version = confine_version();

	if (version == 0)
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_WARNING, CMD_SETTINGS,
		    "Linux 5.13 and later has it; add landlock to lsm= on the kernel's command "
		    "line",
		    "this kernel has no Landlock: trainers may read and write what the agent's "
		    "user may");
	else
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_FINE, 0, NULL,
		    "trainers run in a sandbox, by Landlock %d%s", version,
		    version >= 6 ? ""
			: version >= 5
			? ", but may send signals to other processes of the user, and connect to "
			  "abstract sockets"
			: ", but may send signals, connect to abstract sockets, and send commands "
			  "to devices");
}

/* Of an agent that runs: as it was started. */
static void
check_memory(struct cmd_doctor *d)
{
	long agent = home_holder(d->home);

	if (agent <= 0)
		return;
	if (cgroup_is_prepared(agent, "/proc", "/sys/fs/cgroup"))
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_FINE, 0, NULL,
		    "each trainer has a control group, where all of its memory counts");
	else
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_NOTE, 0, NULL,
		    "no control group was given to the agent (Delegate=memory pids of its unit): "
		    "what trainers share in /dev/shm does not count as their memory, and they "
		    "make no memory files");
}

static void
check_user(struct cmd_doctor *d)
{
	long agent = home_holder(d->home);

	if (agent <= 0)
		return;
	if (user_child_has_rights(agent, "/proc"))
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_FINE, 0, NULL,
		    "trainers have a user of their own, " APART_USER);
	else
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_NOTE, 0, NULL,
		    "trainers have the agent's user (--trainer-user was not given): they may "
		    "connect to sockets with a path that are this user's");
}

static void
check_confinement(struct cmd_doctor *d)
{
	check_landlock(d);
	if (sandbox_works())
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_FINE, 0, NULL,
		    "trainers ask the kernel through seccomp filters");
	else
		cmd_doctor_add(d, "confinement", CMD_DOCTOR_WARNING, CMD_SETTINGS,
		    "Linux 3.17 and later has them (CONFIG_SECCOMP_FILTER)",
		    "this kernel has no seccomp filters: trainers may change modes, dates, limits "
		    "and priorities of what is the agent's");
	for (size_t i = 0; i < d->settings->trainer_count; i++)
		if (d->settings->trainers[i].free)
			cmd_doctor_add(d, "confinement", CMD_DOCTOR_NOTE, 0, NULL,
			    "[trainer %s] runs without a sandbox: confine = no",
			    d->settings->trainers[i].name);
	check_memory(d);
	check_user(d);
}

static void
add_mistake(void *doctor, const char *text)
{
	cmd_doctor_add(doctor, "settings", CMD_DOCTOR_FAULT, CMD_SETTINGS,
	    "fix it; docs/devices.md lists every key", "%s", text);
}

static void
check_settings(struct cmd_doctor *d)
{
	const struct ini_notes tell = {.mistake = add_mistake, .context = d};
	struct why why = {""};
	enum err e = settings_examine(&d->settings, d->home, d->config, &tell, &why);

	if (e)
		d->settings = NULL;
	if (e == ERR_INVALID)
		return; /* each is told */
	if (e) {
		cmd_doctor_add(d, "settings", CMD_DOCTOR_FAULT,
		    e == ERR_NOTFOUND ? CMD_NOT_FOUND : CMD_SETTINGS,
		    "fix it; docs/devices.md lists every key", "%s", why.text);
		return;
	}
	if (d->settings->data_count == 0 && d->settings->trainer_count == 0)
		cmd_doctor_add(d, "settings", CMD_DOCTOR_NOTE, 0, NULL,
		    "no data set is named in rivulet.conf, so the agent gets no work");
	for (size_t i = 0; i < d->settings->warnings.count; i++)
		cmd_doctor_add(d, "settings", CMD_DOCTOR_WARNING, CMD_SETTINGS, "take the line out",
		    "%s", d->settings->warnings.text[i].text);
	for (size_t i = 0; i < d->settings->data_count; i++)
		check_data(d, &d->settings->data[i]);
	for (size_t i = 0; i < d->settings->trainer_count; i++)
		check_trainer(d, &d->settings->trainers[i]);
	if (d->settings->trainer_count > 0)
		check_confinement(d);
	cmd_doctor_rules_check(d);
}

/* What the directory's files hold. */
static double
bytes_in(const char *home, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	double total = 0;

	if (identity_path(path, home, name, NULL))
		return 0;
	struct dirent **list = NULL;
	int n = scandir(path, &list, NULL, NULL);
	for (int i = 0; i < n; i++) {
		char file[PATH_MAX + 260];
		snprintf(file, sizeof(file), "%s/%s", path, list[i]->d_name);
		if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
			total += (double)st.st_size;
		free(list[i]);
	}
	free(list);
	return total;
}

/* Of no interest where no job has error feedback. */
static void
check_residual(struct cmd_doctor *d, double held)
{
	if (held > 0 && d->settings)
		cmd_doctor_add(d, "residual", CMD_DOCTOR_FINE, 0, NULL,
		    "error feedback keeps %.1f MiB; residual_bytes allows %.1f MiB", held / MIB,
		    (double)d->settings->residual_bytes / MIB);
}

/* Likewise of programs that keep nothing. */
static void
check_kept(struct cmd_doctor *d, double held)
{
	if (held > 0 && d->settings)
		cmd_doctor_add(d, "kept", CMD_DOCTOR_FINE, 0, NULL,
		    "programs keep %.1f MiB between their tasks; kept_bytes allows %.1f MiB",
		    held / MIB, (double)d->settings->kept_bytes / MIB);
}

static void
check_disk(struct cmd_doctor *d)
{
	uint64_t bytes;
	double residual = bytes_in(d->home, "residual");
	double cache = bytes_in(d->home, "models"), outbox = bytes_in(d->home, "outbox");

	double kept = bytes_in(d->home, "kept");

	check_residual(d, residual);
	check_kept(d, kept);
	if (!machine_disk_free(d->home, &bytes))
		return;
	double free_bytes = (double)bytes, more = 0;
	if (d->settings)
		more = (double)d->settings->cache_bytes + (double)d->settings->outbox_bytes -
		    cache - outbox;
	if (d->settings && residual > 0)
		more += (double)d->settings->residual_bytes - residual;
	if (d->settings && kept > 0)
		more += (double)d->settings->kept_bytes - kept;
	if (bytes < LEAST_FREE)
		cmd_doctor_add(d, "disk", CMD_DOCTOR_FAULT, CMD_FAILED,
		    "make room, or set cache_bytes lower",
		    "%.0f MiB are free where the home is: models and deltas will not fit",
		    free_bytes / MIB);
	else if (more > free_bytes)
		cmd_doctor_add(d, "disk", CMD_DOCTOR_NOTE, 0, NULL,
		    "%.0f MiB are free; cache_bytes, outbox_bytes, residual_bytes and kept_bytes "
		    "would allow "
		    "%.0f MiB more than is held now",
		    free_bytes / MIB, more / MIB);
	else
		cmd_doctor_add(d, "disk", CMD_DOCTOR_FINE, 0, NULL,
		    "%.0f MiB are free; the model cache holds %.1f MiB", free_bytes / MIB,
		    cache / MIB);
}

/* 0 good, -1 unreadable or damaged; *age in seconds. */
static int
check_entry(struct cmd_doctor *d, const struct outbox *o, const char *task, double *age)
{
	struct outbox_entry entry;
	struct why why = {""};
	struct stat st;
	const struct credentials *held = &d->held;
	enum err e = outbox_open(&entry, o, task, key_spki(held->key), &why);

	for (size_t i = 0; e == ERR_CORRUPT && i < held->identity.previous_count; i++)
		e = outbox_open(&entry, o, task, held->identity.previous[i], NULL);
	if (e == ERR_NOTFOUND)
		return 0;
	if (e) {
		cmd_doctor_add(d, "outbox", CMD_DOCTOR_WARNING, CMD_CORRUPT,
		    "the agent drops it at its next start; is the disk sound?", "%.250s", why.text);
		return -1;
	}
	if (fstat(entry.fd, &st) == 0)
		*age = clock_wall() - (double)st.st_mtime;
	outbox_close(&entry);
	return 0;
}

static void
check_outbox(struct cmd_doctor *d)
{
	char tasks[OUTBOX_ENTRIES_MAX][OUTBOX_TASK_HEX];
	double oldest = 0, age;
	struct outbox o;
	char span[32];

	int room = snprintf(o.dir, sizeof(o.dir), "%s/outbox", d->home);
	if (room < 0 || (size_t)room >= sizeof(o.dir))
		return;
	size_t n = outbox_list(&o, tasks, OUTBOX_ENTRIES_MAX);
	for (size_t i = 0; d->usable && i < n; i++) {
		age = 0;
		check_entry(d, &o, tasks[i], &age);
		oldest = age > oldest ? age : oldest;
	}
	cmd_doctor_span(span, oldest);
	if (n == 0)
		cmd_doctor_add(d, "outbox", CMD_DOCTOR_FINE, 0, NULL, "no delta waits");
	else if (oldest > OLD_S)
		cmd_doctor_add(d, "outbox", CMD_DOCTOR_WARNING, CMD_UNREACHABLE,
		    "is the coordinator out of reach, or does it refuse them? See the agent's log",
		    "%zu deltas wait to be sent, the oldest for %s", n, span);
	else
		cmd_doctor_add(d, "outbox", CMD_DOCTOR_NOTE, 0, NULL,
		    "%zu delta%s wait%s to be sent, the oldest for %s", n, n == 1 ? "" : "s",
		    n == 1 ? "s" : "", span);
}

static const char *
meaning(const char *reason)
{
	static const char *const means[] = {
	    [WAIT_NO_JOB] = "there is no job to work on",
	    [WAIT_PAUSED] = "its operator paused the job",
	    [WAIT_INELIGIBLE] =
		"the job selects other devices (select: labels, devices or percent)",
	    [WAIT_NOT_SELECTED] = "other devices were picked for this round",
	    [WAIT_REPORTED] = "this device has done its part of the round",
	    [WAIT_ABORTED] = "this device gave its task of the round back",
	    [WAIT_JOB_FULL] = "the job has all the devices that it may have",
	    [WAIT_UNSENT] = "a delta of this round waits here to be sent",
	    [WAIT_NO_DATA] =
		"the job needs a data set that rivulet.conf does not name, or more examples",
	    [WAIT_NO_TRAINER] =
		"the job needs a trainer that rivulet.conf does not name or that offers nothing",
	    [WAIT_NO_CODEC] = "the job needs a newer version of rivulet",
	    [WAIT_OUT_OF_MEMORY] =
		"the job's tasks take more memory than [limits] memory_bytes or the machine has",
	    [WAIT_TOO_MANY_EXAMPLES] =
		"the job lets a device claim fewer examples than there are here",
	    [WAIT_NO_FIGURES] = "the trainer does not give the figures that the job asks for",
	    [WAIT_RESTING] = "a task of the job failed here: it is left alone for a while",
	    [WAIT_OLD_AGENT] = "this rivulet is too old for the coordinator",
	    [WAIT_SPOOL_FULL] = "the coordinator's disk has no room for deltas",
	    [WAIT_BUSY] = "the coordinator is busy",
	    [WAIT_RESTARTING] = "the coordinator is restarting",
	    [WAIT_ON_BATTERY] = "[eligibility] power = mains",
	    [WAIT_BATTERY_LOW] = "[eligibility] battery_min",
	    [WAIT_HOT] = "[eligibility] temperature_max",
	    [WAIT_MACHINE_BUSY] = "[eligibility] load_max: others use the processors",
	    [WAIT_HOURS] = "[eligibility] hours",
	    [WAIT_CHECK] = "[eligibility] check: the program says no",
	    [WAIT_METERED] = "[eligibility] metered = pause",
	    [WAIT_DATA_CAP] = "[eligibility] upload_per_day or download_per_day",
	};
	char word[ABORT_WORD_MAX];

	/* What follows the word says it better. */
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(reason, ":"), reason);
	enum wait_reason r = wait_reason_find(word);
	return r < sizeof(means) / sizeof(*means) && means[r] ? means[r] : "";
}

static void
check_last(struct cmd_doctor *d)
{
	char path[PATH_MAX], span[32];
	char *text = NULL;
	struct stat st;
	size_t len;

	if (identity_path(path, d->home, HOME_LAST, NULL) || stat(path, &st) != 0 ||
	    file_read(path, 4096, &text, &len, NULL))
		return;
	text[strcspn(text, "\n")] = '\0';
	cmd_doctor_span(span, clock_wall() - (double)st.st_mtime);
	const char *detail = strchr(text, ' ');
	const char *means = detail ? meaning(detail + 1) : "";
	cmd_doctor_add(d, "last", CMD_DOCTOR_NOTE, 0, NULL,
	    "the agent's latest word, %s ago: %.160s%s%s", span, text, *means ? ": " : "", means);
	free(text);
}

void
cmd_doctor_work_check(struct cmd_doctor *d)
{
	struct stat st;

	if (stat(d->home, &st) != 0)
		return;
	check_settings(d);
	check_disk(d);
	check_outbox(d);
	check_last(d);
}
