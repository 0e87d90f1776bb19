#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "health.h"
#include "hex.h"
#include "log.h"
#include "models.h"
#include "rounds_inside.h"
#include "spool.h"
#include "wake.h"
#include "worker.h"

#define RETRY_LONGEST_MS 60000
#define LACK_FIRST_MS ((uint64_t)1000)

/* Folds that failed, and files that jobs wait for because they are gone, damaged, or cannot be read. */

/* --- folds that failed */

/* Lock held. */
static void
fold_later(struct engine *g, struct job *j, const struct why *why)
{
	uint64_t pause = ENGINE_RETRY_MS;
	char reason[STORE_REASON_MAX];

	for (unsigned i = 0; i < job_pace(j)->fold_failures && pause < RETRY_LONGEST_MS; i++)
		pause *= 2;
	if (pause > RETRY_LONGEST_MS)
		pause = RETRY_LONGEST_MS;
	job_pace(j)->fold_failures++;
	rounds_fold_at(g, j, clock_ms() + pause);
	snprintf(reason, sizeof(reason), "the round waits to be folded: %s", why->text);
	jobs_note_reason(j, reason);
	log_event(LOG_LEVEL_ERROR, "round.delayed", LOG_S("job", job_facts(j)->hex),
	    LOG_U("round", job_facts(j)->row.round), LOG_D("seconds", (double)pause / 1000),
	    LOG_S("why", why->text));
}

/* Back to an open, paused round that has what it had: resuming folds it again. Lock held. */
static void
set_aside(struct engine *g, struct job *j, const struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	uint32_t accepted = facts->round.accepted;

	log_event(LOG_LEVEL_ERROR, "round.failed", LOG_S("job", facts->hex),
	    LOG_U("round", facts->row.round), LOG_S("why", why->text));
	rounds_step(g, j, ROUND_PAUSE, 0);
	rounds_step(g, j, ROUND_BEGIN, accepted);
	jobs_set_state(g, j, JOB_PAUSED, why->text);
}

/* --- files that are gone, damaged, or cannot be read */

static const char *
file_of(enum engine_lack_kind kind)
{
	return kind == LACKS_STATE ? "optimizer state" : kind == LACKS_DELTA ? "delta" : "model";
}

static const char *
remedy_of(enum engine_lack_kind kind, enum err e)
{
	if (e == ERR_DENIED)
		return "it must belong to the coordinator's user (chown)";
	if (kind == LACKS_DELTA)
		return "put it back, or rivuletd check --repair --drop-damaged-deltas";
	return "put it back from a backup";
}

static const char *
fault_of(enum err e)
{
	switch (e) {
	case ERR_NOTFOUND:
		return "gone";
	case ERR_CORRUPT:
		return "damaged";
	default:
		return "not to be read";
	}
}

static void
say_lack(
    char out[STORE_REASON_MAX], const struct engine_lack *lack, enum err e, const struct why *why)
{
	char hex[65];

	hex_encode(hex, lack->id, lack->kind == LACKS_DELTA ? 16 : 32);
	snprintf(out, STORE_REASON_MAX, "%s %s is %s: %s (%.120s)", file_of(lack->kind), hex,
	    fault_of(e), remedy_of(lack->kind, e), why->text);
}

/* In memory only: a start looks by itself. A round that was being folded is open again, with what it has, and is folded again when the
 * job goes on. Lock held. */
static void
begin_lack(struct engine *g, struct job *j, const struct engine_lack *lack, enum err e,
    const struct why *why)
{
	const struct job_facts *facts = job_facts(j);
	uint32_t accepted = facts->round.accepted;
	bool folding = facts->round.state == ROUND_FOLDING;
	char reason[STORE_REASON_MAX];

	log_event(LOG_LEVEL_ERROR, "job.damaged", LOG_S("job", facts->hex),
	    LOG_S("name", facts->name), LOG_U("round", facts->row.round), LOG_S("why", why->text));
	say_lack(reason, lack, e, why);
	rounds_step(g, j, ROUND_PAUSE, 0);
	if (folding)
		rounds_step(g, j, ROUND_BEGIN, accepted);
	jobs_note_state(g, j, JOB_PAUSED, reason);
	jobs_lack_is(g, j, lack);
	job_pace(j)->lack_fault = e;
	wake_ring(jobs_uses(g).wake);
}

/* Lock held. What is being folded finds out by itself. */
static bool
starts_from(const struct job *j, const struct engine_lack *lack)
{
	const struct job_facts *facts = job_facts(j);

	if (facts->state != JOB_RUNNING || !facts->work || facts->round.state == ROUND_FOLDING ||
	    facts->round.state == ROUND_ENDED)
		return false;
	return memcmp(lack->kind == LACKS_MODEL ? facts->row.base : facts->row.optimizer_state,
		   lack->id, 32) == 0;
}

/* Does a failure tell of the file, not of the moment? */
static bool
tells_of_file(enum err e)
{
	return e == ERR_NOTFOUND || e == ERR_CORRUPT || e == ERR_DENIED || e == ERR_IO ||
	    e == ERR_INVALID || e == ERR_LIMIT;
}

void
rounds_lacks(struct engine *g, const struct engine_lack *lack, enum err e, const struct why *why)
{
	unsigned seen = 0;

	if (!tells_of_file(e))
		return;
	jobs_lock(g);
	for (struct job *j = jobs_first(g); j; j = jobs_next(g, j, &seen))
		if (starts_from(j, lack))
			begin_lack(g, j, lack, e, why);
	jobs_unlock(g);
}

void
rounds_doubt(struct engine *g, const uint8_t model[32])
{
	if (jobs_pace(g)->doubt_count < ENGINE_DOUBTS)
		memcpy(jobs_pace(g)->doubts[jobs_pace(g)->doubt_count++], model, 32);
}

static enum err
look_at_delta(struct spool *spool, const uint8_t task[16], struct why *why)
{
	struct delta_file f;

	/* One that was found damaged at the start is looked at as if it were new. */
	bool condemned = spool_pardon(spool, task);
	enum err e = spool_read(spool, task, NULL, &f, why);
	if (!e) {
		e = spool_verify(spool, task, &f, why);
		delta_file_close(&f);
	}
	if (e && condemned && spool_condemn(spool, task, why->text))
		return ERR_NOMEM;
	return e;
}

static enum err
look_at_file(const struct engine_uses *u, const struct engine_lack *lack, struct why *why)
{
	switch (lack->kind) {
	case LACKS_MODEL:
		return models_check(u->models, lack->id, "", why);
	case LACKS_STATE:
		return models_check(u->models, lack->id, MODELS_STATE, why);
	case LACKS_DELTA:
		return look_at_delta(u->spool, lack->id, why);
	default:
		return ERR_OK;
	}
}

/* Of the jobs as they are at one moment: what they wait for, and what their open rounds start from. */
struct wanted {
	uint8_t job[16];
	bool waits;
	struct engine_lack lack;
};

static void
want(struct wanted *to, const struct job *j, bool waits, const struct engine_lack *lack)
{
	memcpy(to->job, job_facts(j)->id, 16);
	to->waits = waits;
	to->lack = *lack;
}

/* Lock held. At most two of a job. */
static size_t
wants_of(struct job *j, uint64_t now, struct wanted *to)
{
	const struct job_facts *facts = job_facts(j);
	static const uint8_t none[32];
	struct engine_lack base = {.kind = LACKS_MODEL}, state = {.kind = LACKS_STATE};
	size_t n = 0;

	memcpy(base.id, facts->row.base, 32);
	memcpy(state.id, facts->row.optimizer_state, 32);
	if (facts->lack.kind && job_pace(j)->lack_ms <= now)
		want(&to[n++], j, true, &facts->lack);
	if (starts_from(j, &base)) {
		want(&to[n++], j, false, &base);
		if (memcmp(state.id, none, 32) != 0)
			want(&to[n++], j, false, &state);
	}
	return n;
}

static struct wanted *
list_wanted(struct engine *g, size_t *count)
{
	uint64_t now = clock_ms();

	*count = 0;
	jobs_lock(g);
	size_t room = jobs_count(g);
	struct wanted *list = calloc(room + 1, 2 * sizeof(*list));
	/* No lock is given away: the list has room for these jobs. */
	for (struct job *j = jobs_first(g); j && list && room-- > 0; j = jobs_after(j))
		*count += wants_of(j, now, list + *count);
	jobs_unlock(g);
	return list;
}

/* What a person put there may fail for another reason, which is said. The first look after a start tells nothing new. Lock held. */
static void
note_fault(struct engine *g, struct job *j, enum err e, const struct why *why)
{
	char reason[STORE_REASON_MAX];

	if (tells_of_file(e) && job_pace(j)->lack_fault && job_pace(j)->lack_fault != e) {
		say_lack(reason, &job_facts(j)->lack, e, why);
		jobs_note_state(g, j, JOB_PAUSED, reason);
	}
	job_pace(j)->lack_fault = tells_of_file(e) ? e : job_pace(j)->lack_fault;
}

/* --- a job that was set aside, once more */

/* Lock held. True: the job that was loaded is the engine's now. */
static bool
take_again(struct engine *g, const uint8_t id[16], struct job *j)
{
	const struct job_facts *facts = job_facts(j);
	struct job *old = jobs_find(g, id);

	if (!old || !job_facts(old)->aside || !states_job_lives(job_facts(old)->state))
		return false;
	if (!facts->aside) {
		jobs_replace(g, old, j);
		if (facts->round.state == ROUND_IDLE)
			rounds_begin_open(g, j);
		log_event(LOG_LEVEL_INFO, "job.mended", LOG_S("job", facts->hex),
		    LOG_S("name", facts->name), LOG_U("round", facts->row.round));
		return true;
	}
	/* It lacks something else, too. */
	jobs_lack_is(g, old, &facts->lack);
	jobs_note_reason(old, facts->reason);
	return false;
}

/* Nobody may see half of a job: it is loaded apart. */
static void
load_again(struct engine *g, const uint8_t id[16])
{
	struct job *j = NULL;

	if (jobs_load_one(g, id, &j))
		return;
	jobs_lock(g);
	bool taken = take_again(g, id, j);
	jobs_unlock(g);
	if (!taken)
		job_free(j);
	else
		wake_ring(jobs_uses(g).wake);
}

/* The file is back (ERR_OK), or is not. */
static void
end_lack(struct engine *g, const struct wanted *w, enum err e, const struct why *why)
{
	jobs_lock(g);
	struct job *j = jobs_find(g, w->job);
	bool again = false, same = j && memcmp(&job_facts(j)->lack, &w->lack, sizeof(w->lack)) == 0;
	if (same && e) {
		uint64_t pause = LACK_FIRST_MS
		    << (job_pace(j)->lack_looks < 5 ? job_pace(j)->lack_looks : 5);
		/* One that is gone, or was judged, costs nothing to look for. */
		job_pace(j)->lack_looks += w->lack.kind == LACKS_DELTA || e == ERR_IO;
		job_pace(j)->lack_ms = clock_ms() + pause;
		note_fault(g, j, e, why);
	} else if (same && job_facts(j)->aside) {
		again = true;
	} else if (same) {
		log_event(LOG_LEVEL_INFO, "job.mended", LOG_S("job", job_facts(j)->hex),
		    LOG_S("name", job_facts(j)->name), LOG_U("round", job_facts(j)->row.round));
		jobs_lack_nothing(g, j);
		jobs_note_state(g, j, JOB_RUNNING, "");
		rounds_step(g, j, ROUND_RESUME, 0);
	}
	jobs_unlock(g);
	if (again)
		load_again(g, w->job);
	else if (same && !e)
		wake_ring(jobs_uses(g).wake);
}

/* Each device's word costs a hash at most, and one in five minutes. */
static void
look_at_doubts(struct engine *g)
{
	uint8_t doubts[ENGINE_DOUBTS][32];

	jobs_lock(g);
	size_t count = jobs_pace(g)->doubt_count;
	memcpy(doubts, jobs_pace(g)->doubts, sizeof(doubts));
	jobs_pace(g)->doubt_count = 0;
	jobs_unlock(g);
	for (size_t i = 0; i < count; i++) {
		struct engine_lack lack = {.kind = LACKS_MODEL};
		struct why why = {""};
		memcpy(lack.id, doubts[i], 32);
		enum err e = models_doubt(jobs_uses(g).models, lack.id, &why);
		rounds_lacks(g, &lack, e, &why);
	}
}

static bool
is_stopping(struct engine *g)
{
	jobs_lock(g);
	bool stopping = jobs_pace(g)->stopping;
	jobs_unlock(g);
	return stopping;
}

/* On a worker. */
static void
look_after(void *arg)
{
	struct engine *g = arg;
	const struct engine_uses u = jobs_uses(g);
	size_t count;

	look_at_doubts(g);
	struct wanted *list = list_wanted(g, &count);
	for (size_t i = 0; i < count && !is_stopping(g); i++) {
		struct why why = {""};
		enum err e = look_at_file(&u, &list[i].lack, &why);
		if (list[i].waits)
			end_lack(g, &list[i], e, &why);
		else if (e)
			rounds_lacks(g, &list[i].lack, e, &why);
	}
	free(list);
	jobs_lock(g);
	jobs_pace(g)->looking = false;
	jobs_unlock(g);
}

void
rounds_look_after(struct engine *g)
{
	jobs_lock(g);
	bool begin = jobs_pace(g)->started && !jobs_pace(g)->stopping && !jobs_pace(g)->looking;
	jobs_pace(g)->looking |= begin;
	jobs_unlock(g);
	if (!begin || worker_submit(jobs_pool(g), look_after, g) == ERR_OK)
		return;
	jobs_lock(g);
	jobs_pace(g)->looking = false;
	jobs_unlock(g);
}

void
rounds_fold_failed(struct engine *g, const struct engine_fold *f, const struct engine_lack *lack,
    enum err e, const struct why *why)
{
	struct job *j = f->job;
	/* For one file its job waits alone: the machine is not ill of it. */
	bool passes = health_passes(e) && !(lack->kind && tells_of_file(e));

	if (passes)
		health_note(jobs_uses(g).health, e, job_facts(j)->model_bytes, why->text);
	jobs_lock(g);
	if (job_facts(j)->round.state == ROUND_FOLDING && passes)
		fold_later(g, j, why);
	else if (job_facts(j)->round.state == ROUND_FOLDING && lack->kind &&
	    job_facts(j)->state == JOB_RUNNING)
		begin_lack(g, j, lack, e, why);
	else if (job_facts(j)->round.state == ROUND_FOLDING)
		set_aside(g, j, why);
	jobs_unlock(g);
}
