#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "audit.h"
#include "check_inside.h"
#include "delta_file.h"
#include "hex.h"
#include "inspect.h"
#include "json.h"
#include "keys.h"
#include "services.h"
#include "store.h"

#define NAME_ROOM 320

/* False: a running coordinator has folded the round and removed the delta's file during the check, which is no fault. */
static bool
still_open(struct check *c, const struct check_delta *d)
{
	struct store_round r;

	return !c->running ||
	    (store_round_get(c->db, d->job->id, d->row.round, &r) == ERR_OK &&
		r.state == OUTCOME_OPEN);
}

/* Checks a kept delta's manifest and its signature, which otherwise is verified only when the round is folded again. */
static enum err
judge_manifest(const struct check *c, const uint8_t manifest[MANIFEST_LEN], struct why *why)
{
	struct manifest m;

	enum err e = manifest_decode(&m, manifest, MANIFEST_LEN, why);
	const char *fault = e ? NULL : check_proofs_manifest(c, manifest, &m);
	return fault ? err_set(why, ERR_CORRUPT, "%s", fault) : e;
}

/* Checks the file of an accepted delta against its row: head, manifest, and every chunk against the signed root. */
static enum err
judge_file(const struct check *c, const char *name, const struct check_delta *d, struct why *why)
{
	char path[CHECK_PATH_MAX];
	struct delta_file f;

	check_path(c, name, path);
	enum err e = delta_file_open(&f, path, O_RDONLY, c->key, why);
	if (e)
		return e;
	if (memcmp(f.manifest, d->row.manifest, MANIFEST_SIGNED) != 0)
		e = err_set(why, ERR_CORRUPT, "it holds another delta than its row says");
	if (!e)
		e = judge_manifest(c, f.manifest, why);
	if (!e)
		e = delta_file_verify(&f, why);
	delta_file_close(&f);
	return e;
}

/* Deletes a delta's row and appends an audit entry in one transaction, so that the audit log says that a receipt is not honoured. */
static enum err
take_back(struct check *c, const struct check_delta *d, struct services *s, struct why *why)
{
	struct json *facts = json_object();
	const struct audit_event event = {.event = RECORD_DELTA_LOST,
	    .job = d->row.job,
	    .round = d->row.round,
	    .facts = facts,
	    .device = d->row.device};

	json_add_string(facts, "by", "rivuletd check");
	enum err e = store_meta_get(c->db, "incarnation", &s->incarnation);
	if (!e)
		e = store_accept_drop(c->db, d->row.job, d->row.round, d->row.device);
	if (e) {
		json_free(facts);
		return err_set(why, e, "%s", store_inspect_why(c->db));
	}
	return audit_append(c->db, s, &event, why);
}

static void
drop(struct check *c, const struct check_delta *d, const char *name)
{
	struct services s = {.incarnation = 0};
	struct why why = {""};
	char device[65];

	if (!c->repair || !c->drop_deltas)
		return;
	enum err e = keys_load_key(c->dir, "sign.key", &s.sign_key, &why);
	if (!e)
		e = store_inspect_begin(c->db, true, &why);
	if (!e)
		e = take_back(c, d, &s, &why);
	if (!e)
		e = store_inspect_commit(c->db, &why);
	store_inspect_rollback(c->db);
	key_free(s.sign_key);
	hex_encode(device, d->row.device, 32);
	if (e)
		check_found(c, CHECK_DELTA_KEPT, name, false, "not taken back: %s", why.text);
	else
		check_found(c, CHECK_DELTA_DROPPED, name, false,
		    "taken back: device %s, job %s, round %llu. \"Nothing acknowledged is lost\" "
		    "is broken for it",
		    device, d->job->hex, (unsigned long long)d->row.round);
}

static void
judge_delta(struct check *c, const struct check_delta *d)
{
	char name[64], hex[33], device[65];
	struct why why = {""};

	hex_encode(hex, d->row.task, 16);
	snprintf(name, sizeof(name), "spool/%s.delta", hex);
	enum err e = judge_file(c, name, d, &why);
	if (!e || !still_open(c, d) || check_is_closed(c, name, d->job->hex))
		return;
	if (e == ERR_DENIED || e == ERR_UNSUPPORTED) {
		check_found(c, CHECK_DELTA_UNREAD, name, false, "%s", why.text);
		return;
	}
	if (c->memory) {
		check_found(c, CHECK_DELTA_AGAIN, name, false, "%s", why.text);
		return;
	}
	hex_encode(device, d->row.device, 32);
	bool moved = e != ERR_NOTFOUND && check_set_aside(c, name);
	check_found(c, e == ERR_NOTFOUND ? CHECK_DELTA_MISSING : CHECK_DELTA_DAMAGED, name, false,
	    "%.150s%s; accepted from device %.16s in round %llu of job %s", why.text,
	    moved ? "; moved to damaged/" : "", device, (unsigned long long)d->row.round,
	    d->job->hex);
	drop(c, d, name);
}

static bool
is_accepted(const struct check *c, const uint8_t task[16])
{
	for (size_t i = 0; i < c->rows.delta_count; i++)
		if (memcmp(c->rows.deltas[i].row.task, task, 16) == 0)
			return true;
	return false;
}

/* Is the part of an open round? Then its device may resume it. */
static bool
is_wanted_part(const struct check *c, const char *name)
{
	char path[CHECK_PATH_MAX];
	struct delta_file f;
	struct manifest m;
	bool wanted = false;

	check_path(c, name, path);
	enum err e = delta_file_open(&f, path, O_RDONLY, c->key, NULL);
	if (e == ERR_DENIED)
		return true;
	if (e || manifest_decode(&m, f.manifest, sizeof(f.manifest), NULL)) {
		if (!e)
			delta_file_close(&f);
		return false;
	}
	delta_file_close(&f);
	for (size_t i = 0; i < c->rows.job_count && !wanted; i++) {
		const struct check_job *j = &c->rows.jobs[i];
		wanted =
		    j->live && j->open && j->last.round == m.round && memcmp(j->id, m.job, 16) == 0;
	}
	return wanted;
}

static void
judge_name(struct check *c, const char *folder, const char *base)
{
	char name[NAME_ROOM];
	size_t len = strlen(base);
	uint8_t task[16];

	if (strcmp(base, "lost") == 0)
		return;
	snprintf(name, sizeof(name), "%s/%s", folder, base);
	bool part = len == 37 && strcmp(base + 32, ".part") == 0;
	bool delta = len == 38 && strcmp(base + 32, ".delta") == 0;
	bool copy = len > 33 + 4 && base[32] == '.' && strcmp(base + len - 4, ".new") == 0;
	if ((!part && !delta && !copy) || !hex_decode(task, sizeof(task), base, 32))
		check_found(c, CHECK_FILE_UNKNOWN, name, false, "no delta has such a name");
	else if (copy)
		check_found(c, CHECK_FILE_TEMPORARY, name, check_remove(c, name),
		    "a part's copy that was never finished");
	else if (delta && !is_accepted(c, task))
		check_found(c, CHECK_FILE_ORPHAN, name, check_lose(c, name),
		    "no open round accepted this delta");
	else if (part && !is_wanted_part(c, name))
		check_found(c, CHECK_FILE_TEMPORARY, name, check_remove(c, name),
		    "this part is damaged, or its round is over");
}

/* Checks a kept delta by itself: its head holds the manifest that its device signed. */
static void
judge_kept(struct check *c, const char *folder, const char *base)
{
	char name[NAME_ROOM], path[CHECK_PATH_MAX];
	struct why why = {""};
	struct delta_file f;
	size_t len = strlen(base);

	snprintf(name, sizeof(name), "%s/%s", folder, base);
	check_path(c, name, path);
	if (len != 38 || strcmp(base + 32, ".delta") != 0) {
		check_found(c, CHECK_FILE_UNKNOWN, name, false, "no delta has such a name");
		return;
	}
	enum err e = delta_file_open(&f, path, O_RDONLY, c->key, &why);
	if (!e) {
		e = judge_manifest(c, f.manifest, &why);
		e = e ? e : delta_file_verify(&f, &why);
		delta_file_close(&f);
	}
	/* Beside a coordinator the oldest may go while we look. */
	if (!e || (e == ERR_NOTFOUND && c->running) || check_is_closed(c, name, NULL))
		return;
	bool unread = e == ERR_DENIED || e == ERR_UNSUPPORTED;
	bool moved = !unread && check_set_aside(c, name);
	check_found(c, unread ? CHECK_DELTA_UNREAD : CHECK_KEPT_DAMAGED, name, false, "%.200s%s",
	    why.text, moved ? "; moved to damaged/" : "");
}

void
check_spool_run(struct check *c)
{
	if (!c->has_rows)
		return;
	for (size_t i = 0; i < c->rows.delta_count; i++)
		judge_delta(c, &c->rows.deltas[i]);
	check_each_file(c, "kept", judge_kept);
	/* What is arriving just now has no row yet. */
	if (!c->running)
		check_each_file(c, "spool", judge_name);
}
