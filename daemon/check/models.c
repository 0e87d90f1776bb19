#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_inside.h"
#include "hash.h"
#include "hex.h"
#include "inspect.h"
#include "models.h"
#include "store.h"

#define NAME_MAX_HERE 128
static const uint8_t none[32];

/* The job that needs this model, as base of its open round, as its newest model or as one of its best; NULL: none does. */
static const struct check_job *
needs_model(const struct check *c, const uint8_t id[32])
{
	for (size_t i = 0; i < c->rows.job_count; i++) {
		const struct check_job *j = &c->rows.jobs[i];
		const uint8_t *present = j->open ? j->last.base : j->last.model;
		if (j->last.round > 0 && memcmp(present, id, 32) == 0)
			return j;
		if (j->live && rate_control_holds_model(&j->schedule, id))
			return j;
		if (best_holds(&j->best, id))
			return j;
	}
	return NULL;
}

/* Does a job name this optimizer state? An ended job does not need its last state, but the next round of any job, or the next start,
 * removes the state. */
static bool
names_state(const struct check *c, const uint8_t hash[32])
{
	for (size_t i = 0; i < c->rows.job_count; i++)
		if (memcmp(c->rows.jobs[i].last.optimizer_state, hash, 32) == 0 ||
		    rate_control_holds(&c->rows.jobs[i].schedule, hash))
			return true;
	return false;
}

static bool
has_row(const struct check *c, const uint8_t id[32])
{
	for (size_t i = 0; i < c->rows.model_count; i++)
		if (memcmp(c->rows.models[i].id, id, 32) == 0)
			return true;
	return false;
}

/* Checks a file whose SHA-256 should be id, and says what is wrong. ERR_NOTFOUND if the file is missing. */
static enum err
judge_file(
    const struct check *c, const char *name, const uint8_t id[32], uint64_t bytes, struct why *why)
{
	char path[CHECK_PATH_MAX];
	uint8_t hash[HASH_LEN];
	struct stat st;

	check_path(c, name, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_errno(why, "it cannot be opened");
	enum err e = ERR_OK;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		e = err_set(why, ERR_CORRUPT, "it is not a file");
	else if (bytes > 0 && (uint64_t)st.st_size != bytes)
		e = err_set(why, ERR_CORRUPT, "it has %lld bytes, not %llu", (long long)st.st_size,
		    (unsigned long long)bytes);
	else if (hash_file(fd, hash))
		e = err_set(why, ERR_CORRUPT, "it cannot be read");
	else if (memcmp(hash, id, HASH_LEN) != 0)
		e = err_set(why, ERR_CORRUPT, "its bytes do not match its name");
	close(fd);
	return e;
}

static bool
forget(struct check *c, const struct store_model *m)
{
	return c->repair && store_model_delete(c->db, m->id) == ERR_OK;
}

/* False: a running coordinator has removed the model, file and row, during the check, which is no fault. */
static bool
still_known(struct check *c, const uint8_t id[32])
{
	struct store_model m;

	return !c->running || store_model_get(c->db, id, &m) != ERR_NOTFOUND;
}

static void
judge_model(struct check *c, const struct store_model *m)
{
	const struct check_job *user = needs_model(c, m->id);
	bool old = !user && memcmp(m->job, none, 16) != 0; /* made by a job, not uploaded */
	char name[NAME_MAX_HERE], hex[65];
	struct why why = {""};

	hex_encode(hex, m->id, 32);
	snprintf(name, sizeof(name), "models/%s", hex);
	enum err e = judge_file(c, name, m->id, m->bytes, &why);
	if (!e || !still_known(c, m->id) || check_is_closed(c, name, user ? user->hex : NULL))
		return;
	bool moved = e != ERR_NOTFOUND && check_set_aside(c, name);
	if (old && (moved || e == ERR_NOTFOUND))
		check_found(c, CHECK_MODEL_FORGOTTEN, name, forget(c, m), "%s", why.text);
	else
		check_found(c, e == ERR_NOTFOUND ? CHECK_MODEL_MISSING : CHECK_MODEL_DAMAGED, name,
		    false, "%s%s%s%s", why.text, user ? "; needed by job " : "",
		    user ? user->hex : "", moved ? "; moved to damaged/" : "");
}

/* Checks a model's difference. Without a good one, a device only has to fetch the whole model. */
static void
judge_difference(struct check *c, const struct store_model *m)
{
	char path[CHECK_PATH_MAX], name[NAME_MAX_HERE], hex[65];
	struct why why = {""};

	hex_encode(hex, m->id, 32);
	snprintf(name, sizeof(name), "models/%s" MODELS_DIFFERENCE, hex);
	check_path(c, name, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	enum err e = models_difference_check(fd, m->id, &why);
	close(fd);
	if (e && still_known(c, m->id))
		check_found(c, CHECK_DIFFERENCE_DAMAGED, name, check_set_aside(c, name), "%s",
		    why.text[0] ? why.text : err_name(e));
}

/* Has the job begun its next round, or ended, during the check? Then a running coordinator has removed the state, which is no fault. */
static bool
has_moved_on(struct check *c, const struct check_job *j)
{
	struct store_round now;
	struct store_job job;

	if (!c->running)
		return false;
	if (store_round_last(c->db, j->id, &now) == ERR_OK && now.round != j->last.round)
		return true;
	if (store_job_get(c->db, j->id, &job))
		return false;
	free(job.document);
	return !states_job_lives(job.state);
}

static void
judge_state(struct check *c, const struct check_job *j, const uint8_t hash[32])
{
	char name[NAME_MAX_HERE], hex[65];
	struct why why = {""};

	if (!j->live || !j->open || memcmp(hash, none, 32) == 0)
		return;
	hex_encode(hex, hash, 32);
	snprintf(name, sizeof(name), "models/%s.state", hex);
	enum err e = judge_file(c, name, hash, 0, &why);
	if (!e || has_moved_on(c, j) || check_is_closed(c, name, j->hex))
		return;
	bool moved = e != ERR_NOTFOUND && check_set_aside(c, name);
	check_found(c, e == ERR_NOTFOUND ? CHECK_STATE_MISSING : CHECK_STATE_DAMAGED, name, false,
	    "%s; needed by job %s%s", why.text, j->hex, moved ? "; moved to damaged/" : "");
}

static bool
needs_state(const struct check *c, const uint8_t hash[32])
{
	for (size_t i = 0; i < c->rows.job_count; i++) {
		const struct check_job *j = &c->rows.jobs[i];
		if (j->live && j->open &&
		    (memcmp(j->last.optimizer_state, hash, 32) == 0 ||
			rate_control_holds(&j->schedule, hash)))
			return true;
	}
	return false;
}

/* Checks an optimizer state that no round needs any more. */
static void
judge_spare_state(struct check *c, const char *name, const uint8_t hash[32])
{
	struct why why = {""};

	if (!needs_state(c, hash) && judge_file(c, name, hash, 0, &why))
		check_found(c, CHECK_FILE_ORPHAN, name, check_lose(c, name),
		    "no round needs this optimizer state, and %s", why.text);
}

static void
judge_name(struct check *c, const char *folder, const char *base)
{
	char name[NAME_MAX_HERE + 256];
	size_t len = strlen(base);
	uint8_t id[32];

	snprintf(name, sizeof(name), "%s/%s", folder, base);
	bool state = len == 70 && strcmp(base + 64, ".state") == 0;
	bool step = len == 69 && strcmp(base + 64, MODELS_DIFFERENCE) == 0;
	if (strncmp(base, "tmp.", 4) == 0)
		check_found(
		    c, CHECK_FILE_TEMPORARY, name, check_remove(c, name), "it was never finished");
	else if ((len != 64 && !state && !step) || !hex_decode(id, sizeof(id), base, 64))
		check_found(c, CHECK_FILE_UNKNOWN, name, false,
		    "no model or optimizer state has such a name");
	else if (state ? !names_state(c, id) : !has_row(c, id))
		check_found(c, CHECK_FILE_ORPHAN, name, check_lose(c, name),
		    state ? "no round needs this optimizer state" : "no row names this model");
	else if (state)
		judge_spare_state(c, name, id);
}

void
check_models_run(struct check *c)
{
	if (!c->has_rows)
		return;
	for (size_t i = 0; i < c->rows.job_count; i++) {
		struct check_job *j = &c->rows.jobs[i];
		const uint8_t *present = j->open ? j->last.base : j->last.model, *state;
		if (j->last.round > 0 && !has_row(c, present))
			check_found(c, CHECK_ROUND_DAMAGED, j->hex, false,
			    "the model of its newest round has no row");
		judge_state(c, j, j->last.optimizer_state);
		for (uint32_t k = 0; (state = rate_control_held(&j->schedule, k)); k++)
			if (memcmp(state, j->last.optimizer_state, 32) != 0)
				judge_state(c, j, state);
	}
	for (size_t i = 0; i < c->rows.model_count; i++) {
		judge_model(c, &c->rows.models[i]);
		judge_difference(c, &c->rows.models[i]);
	}
	/* What a coordinator is making just now has no row yet. */
	if (!c->running)
		check_each_file(c, "models", judge_name);
}
