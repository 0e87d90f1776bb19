#include "start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive.h"
#include "audit.h"
#include "bytes.h"
#include "config.h"
#include "cpu.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "job.h"
#include "json.h"
#include "log.h"
#include "lost.h"
#include "past_rows.h"
#include "services.h"
#include "spool.h"
#include "store.h"
#include "worker.h"

#define SECRET_FILE_MAX 256

/* --- the configuration */

/* With a path of its own, STATE/spool is a link to it: check, backup and people find the spool where it always is. */
static enum err
place_link(const char *link, const char *path, struct why *why)
{
	struct stat st;

	if (lstat(link, &st) == 0 && S_ISLNK(st.st_mode) && unlink(link) != 0)
		return err_errno(why, "remove %s", link);
	if (!path[0])
		return ERR_OK;
	if (rmdir(link) != 0 && errno != ENOENT)
		return err_errno(
		    why, "[spool] path is %s: remove %s, or move its deltas there", path, link);
	return symlink(path, link) == 0 ? ERR_OK : err_errno(why, "link %s", link);
}

/* Reads a secret: 32 raw bytes, or hex digits with or without a line end. */
static bool
read_secret(uint8_t secret[32], const char *text, size_t len)
{
	if (len == 32) {
		memcpy(secret, text, 32);
		return true;
	}
	while (len > 64 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	return len == 64 && hex_decode(secret, 32, text, len);
}

enum err
spool_start_secret(const struct config *c, uint8_t secret[32], bool *found, struct why *why)
{
	const char *credentials = getenv("CREDENTIALS_DIRECTORY");
	char path[CONFIG_PATH_MAX + 32] = "", *text = NULL;
	size_t len = 0;

	*found = false;
	if (c->spool_key_file[0])
		snprintf(path, sizeof(path), "%s", c->spool_key_file);
	else if (credentials)
		snprintf(path, sizeof(path), "%.1000s/rivulet.spool-key", credentials);
	else
		return ERR_OK;
	enum err e = file_read(path, SECRET_FILE_MAX, &text, &len, why);
	if (e == ERR_NOTFOUND && !c->spool_key_file[0])
		return ERR_OK;
	if (e)
		return e;
	*found = read_secret(secret, text, len);
	hash_wipe(text, len);
	free(text);
	return *found
	    ? ERR_OK
	    : err_set(why, ERR_DENIED, "%s does not hold 32 bytes or 64 hex digits", path);
}

static enum err
open_spool(struct services *s, struct why *why)
{
	char dir[CONFIG_PATH_MAX + 16], lost[CONFIG_PATH_MAX + 16];
	uint8_t secret[32];
	bool found;

	enum err e = spool_start_secret(s->fixed, secret, &found, why);
	if (e)
		return e;
	snprintf(dir, sizeof(dir), "%s/spool", s->fixed->state_dir);
	e = place_link(dir, s->fixed->spool_path, why);
	if (e)
		return e;
	spool_lost_dir(s->fixed, lost);
	const struct spool_options o = {.lost = lost,
	    .dir = s->fixed->spool_path[0] ? s->fixed->spool_path : dir,
	    .quota = s->fixed->spool_quota,
	    .memory = s->fixed->spool_memory,
	    .secret = found ? secret : NULL,
	    .stop = s->stop};
	e = spool_open(&s->spool, &o, why);
	hash_wipe(secret, sizeof(secret));
	return e;
}

/* --- what the database says */

/* An accepted delta of an open round. */
struct accepted {
	uint8_t task[16], job[16], device[32];
	uint8_t manifest[MANIFEST_LEN];
	uint64_t round;
	enum err e; /* ERR_OK: the delta's file is good */
	struct why why;
};

struct open_round {
	uint8_t job[16];
	uint64_t round;
	bool live; /* the delta's job is neither done nor stopped */
};

/* A list of deltas, sorted by task. */
struct list {
	struct accepted *deltas;
	size_t count, room;
};

struct kept {
	struct services *s;
	struct store_db *db;
	/* Deltas of open rounds; of rounds just ended, if deltas are kept. */
	struct list open, over;
	struct open_round *rounds; /* the open rounds */
	size_t round_count, round_room;
};

static enum err
keep_accept(void *ctx, const struct store_accept *a)
{
	struct list *l = ctx;
	void *items = bytes_grow(l->deltas, l->count, &l->room, sizeof(*l->deltas));

	if (!items)
		return ERR_NOMEM;
	l->deltas = items;
	struct accepted *d = &l->deltas[l->count++];
	*d = (struct accepted){.round = a->round};
	memcpy(d->task, a->task, sizeof(d->task));
	memcpy(d->job, a->job, sizeof(d->job));
	memcpy(d->device, a->device, sizeof(d->device));
	memcpy(d->manifest, a->manifest, sizeof(d->manifest));
	return ERR_OK;
}

static enum err
keep_job(void *ctx, const struct store_job_brief *j)
{
	struct kept *k = ctx;
	struct store_round r;

	enum err e = store_round_last(k->db, j->id, &r);
	if (e)
		return e;
	bool open = r.state == OUTCOME_OPEN;
	bool live = states_job_lives(j->state);
	/* An evaluation has no deltas; the round before it has. */
	uint64_t over = r.round - (open || states_round_evaluates(r.state));
	if (k->s->fixed->keep_deltas)
		e = store_accept_each(k->db, j->id, over, keep_accept, &k->over);
	if (e || !open)
		return e;
	void *items = bytes_grow(k->rounds, k->round_count, &k->round_room, sizeof(*k->rounds));
	if (!items)
		return ERR_NOMEM;
	k->rounds = items;
	struct open_round *o = &k->rounds[k->round_count++];
	*o = (struct open_round){.round = r.round, .live = live};
	memcpy(o->job, j->id, sizeof(o->job));
	return live ? store_accept_waiting(k->db, j->id, r.round, keep_accept, &k->open) : ERR_OK;
}

static enum err
collect(struct store_db *db, void *arg, struct why *why)
{
	struct kept *k = arg;

	(void)why;
	k->db = db;
	return store_job_brief_each(db, keep_job, k);
}

static int
compare_tasks(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

static void
sort(struct list *l)
{
	if (l->count > 0)
		qsort(l->deltas, l->count, sizeof(*l->deltas), compare_tasks);
}

static bool
has(const struct list *l, const uint8_t task[16])
{
	return l->count > 0 &&
	    bsearch(task, l->deltas, l->count, sizeof(*l->deltas), compare_tasks) != NULL;
}

struct question {
	const struct open_round *of;
	uint32_t oldest; /* how many rounds old deltas may be */
};

static enum err
ask_oldest(struct store_db *db, void *arg, struct why *why)
{
	struct store_job row = {.document = NULL};
	struct question *q = arg;
	struct job_spec spec;

	enum err e = store_job_get(db, q->of->job, &row);
	if (!e)
		e = job_parse(&spec, row.document, row.document_len, why);
	free(row.document);
	if (e)
		return e;
	q->oldest = spec.round.max_staleness;
	job_deinit(&spec);
	return ERR_OK;
}

/* Might the open round have taken a delta of `round`? The job's document is read only for deltas of other rounds. */
static bool
takes(const struct kept *k, const struct open_round *o, uint64_t round)
{
	struct question q = {.of = o};

	if (round >= o->round)
		return round == o->round;
	return !store_read(k->s->store, ask_oldest, &q, NULL) && o->round - round <= q.oldest;
}

static const struct open_round *
find_round(const struct kept *k, const struct manifest *m)
{
	for (size_t i = 0; i < k->round_count; i++)
		if (memcmp(k->rounds[i].job, m->job, sizeof(m->job)) == 0)
			return takes(k, &k->rounds[i], m->round) ? &k->rounds[i] : NULL;
	return NULL;
}

/* A part is removed once its round has ended; until then its device may resume it. A delta without a row, if its round is open, may have
 * been left by a crash before the commit; if its round has ended, it has a row, or belongs to another database. */
static enum spool_fate
judge(void *ctx, const uint8_t task[16], bool part, const struct manifest *m)
{
	const struct kept *k = ctx;

	if (!part && (has(&k->open, task) || has(&k->over, task)))
		return SPOOL_STAYS;
	if (!m)
		return SPOOL_LOST;
	const struct open_round *o = find_round(k, m);
	if (part)
		return o && o->live ? SPOOL_STAYS : SPOOL_GOES;
	if (spool_lost_has_row(k->s->store, m))
		return SPOOL_GOES;
	return o ? SPOOL_LEFTOVER : SPOOL_LOST;
}

/* --- hashing again */

static void
verify(void *arg, unsigned i)
{
	struct kept *k = arg;
	struct accepted *d = &k->open.deltas[i];
	struct delta_file file;

	d->e = spool_read(k->s->spool, d->task, d->manifest, &file, &d->why);
	if (d->e)
		return;
	d->e = spool_verify(k->s->spool, d->task, &file, &d->why);
	delta_file_close(&file);
}

static void
tell(const struct accepted *d, const char *event)
{
	char job[33], device[65], task[33];

	hex_encode(job, d->job, sizeof(d->job));
	hex_encode(device, d->device, sizeof(d->device));
	hex_encode(task, d->task, sizeof(d->task));
	log_event(LOG_LEVEL_ERROR, event, LOG_S("job", job), LOG_U("round", d->round),
	    LOG_S("device", device), LOG_S("task", task), LOG_S("why", d->why.text));
}

static bool
is_bad(const struct accepted *d)
{
	return d->e == ERR_CORRUPT || d->e == ERR_NOTFOUND || d->e == ERR_UNSUPPORTED;
}

static enum err
drop_row(struct kept *k, struct store_db *db, const struct accepted *d, struct why *why)
{
	enum err e = store_accept_drop(db, d->job, d->round, d->device);
	const struct audit_event event = {.event = RECORD_DELTA_LOST,
	    .job = d->job,
	    .round = d->round,
	    .device = d->device,
	    .detail = json_object()};

	if (!e)
		return audit_append(db, k->s, &event, why);
	json_free(event.detail);
	return e;
}

static enum err
drop_rows(struct store_db *db, void *arg, struct why *why)
{
	struct kept *k = arg;
	enum err e = ERR_OK;

	for (size_t i = 0; i < k->open.count && !e; i++)
		if (is_bad(&k->open.deltas[i]))
			e = drop_row(k, db, &k->open.deltas[i], why);
	return e;
}

/* Deletes the rows of lost deltas of a spool in memory: every device still has its delta. */
static enum err
drop_lost(struct kept *k, struct why *why)
{
	size_t bad = 0;

	for (size_t i = 0; i < k->open.count; i++)
		bad += is_bad(&k->open.deltas[i]);
	if (bad == 0)
		return ERR_OK;
	enum err e = store_write(k->s->store, drop_rows, k, why);
	for (size_t i = 0; i < k->open.count && !e; i++)
		if (is_bad(&k->open.deltas[i]))
			spool_remove(k->s->spool, k->open.deltas[i].task);
	if (!e)
		log_event(LOG_LEVEL_WARN, "spool.lost", LOG_U("deltas", bad),
		    LOG_S("why", "the spool is in memory; their devices send them again"));
	return e;
}

/* Condemns damaged deltas: a delta that cannot be used stops its job, not the whole coordinator. */
static enum err
condemn_bad(struct kept *k, struct why *why)
{
	for (size_t i = 0; i < k->open.count; i++) {
		const struct accepted *d = &k->open.deltas[i];
		if (!d->e)
			continue;
		tell(d, "delta.damaged");
		if (spool_condemn(k->s->spool, d->task, d->why.text))
			return err_set(why, ERR_NOMEM, "no memory");
	}
	return ERR_OK;
}

static enum err
check_all(struct kept *k, struct why *why)
{
	bool memory = spool_in_memory(k->s->spool);

	worker_parallel(cpu_count(), (unsigned)k->open.count, verify, k);
	for (size_t i = 0; i < k->open.count; i++) {
		const struct accepted *d = &k->open.deltas[i];
		if (d->e == ERR_NOMEM || d->e == ERR_DENIED || d->e == ERR_CLOSED ||
		    (memory && d->e && !is_bad(d)))
			return err_set(why, d->e, "%s", d->why.text);
	}
	return memory ? drop_lost(k, why) : condemn_bad(k, why);
}

/* Moves deltas of ended rounds to the archive: a coordinator that died between a round's commit and its cleaning up left them. */
static enum err
keep_over(struct kept *k, struct why *why)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < k->over.count && !e; i++) {
		e = archive_add(
		    k->s->archive, k->over.deltas[i].task, k->s->fixed->keep_deltas_bytes, why);
		e = e == ERR_NOTFOUND ? ERR_OK : e;
	}
	return e;
}

static enum err
open_both(struct services *s, struct why *why)
{
	char path[CONFIG_PATH_MAX + 16];

	if (s->fixed->keep_deltas && s->fixed->spool_memory)
		return err_set(why, ERR_INVALID,
		    "[retention] keep_deltas = yes needs [spool] mode = durable: the other is "
		    "there "
		    "so that no delta rests on disk");
	enum err e = open_spool(s, why);
	snprintf(path, sizeof(path), "%s/kept", s->fixed->state_dir);
	return e ? e : archive_open(&s->archive, path, s->spool, why);
}

enum err
spool_start(struct services *s, struct why *why)
{
	struct kept k = {.s = s};

	enum err e = open_both(s, why);
	if (!e)
		e = store_read(s->store, collect, &k, why);
	sort(&k.open);
	sort(&k.over);
	if (!e)
		e = spool_recover(s->spool, judge, &k, why);
	if (s->spool && spool_lost_found(s->spool) > 0)
		log_event(LOG_LEVEL_ERROR, "files.lost",
		    LOG_U("deltas", spool_lost_found(s->spool)),
		    LOG_S("why", "no row explains them; they are in lost/"));
	if (!e)
		e = keep_over(&k, why);
	if (!e)
		e = check_all(&k, why);
	free(k.open.deltas);
	free(k.over.deltas);
	free(k.rounds);
	return e;
}
