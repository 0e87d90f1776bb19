#include <math.h>
#include <stddef.h>

#include "clock.h"
#include "jobs_inside.h"
#include "log.h"
#include "store.h"

/* What jobs have had of the devices; round/policy/share.h says what that decides. */

#define SECOND_MS 1000

static struct job *
share_job(struct share_member *m)
{
	return m ? (struct job *)(void *)((char *)m - offsetof(struct job, member)) : NULL;
}

void
jobs_share_join(struct engine *g, struct job *j)
{
	j->member.serial = j->facts.serial;
	j->member.waits = j->facts.state == JOB_PAUSED;
	if (!share_order_add(&g->order, &j->member)) {
		log_event(LOG_LEVEL_ERROR, "job.unserved", LOG_S("job", j->facts.hex),
		    LOG_S("why", "too many jobs are not over"));
		return;
	}
	if (g->pace.started)
		share_order_raise(&g->order, &j->member, clock_ms());
}

void
jobs_share_wait(struct engine *g, struct job *j, bool waits)
{
	const bool back = j->member.waits && !waits;

	j->member.waits = waits;
	if (back && j->member.is_in)
		share_order_raise(&g->order, &j->member, clock_ms());
}

/* --- tasks */

void
jobs_share_begin(struct engine *g, struct job *j, struct invite *v)
{
	if (v->handed_ms > 0)
		return;
	v->handed_ms = clock_ms();
	v->charged = share_begin(&j->member.use, v->handed_ms);
	share_order_move(&g->order, &j->member);
}

static void
end(struct job *j, struct invite *v, uint64_t now)
{
	if (v->handed_ms > 0)
		share_end(
		    &j->member.use, v->charged, (double)(now - v->handed_ms) / SECOND_MS, now);
	v->handed_ms = 0;
}

void
jobs_share_end(struct engine *g, struct job *j, struct invite *v)
{
	end(j, v, clock_ms());
	share_order_move(&g->order, &j->member);
}

void
jobs_share_end_all(struct engine *g, struct job *j)
{
	const uint64_t now = clock_ms();

	for (size_t i = 0; i < j->invite_count; i++)
		end(j, &j->invites[i], now);
	share_order_move(&g->order, &j->member);
}

/* --- the walk */

struct job *
jobs_share_next(struct engine *g, struct share_walk *w)
{
	if (w->seen > 0 && w->seen % 8 == 0)
		lock_give_way(&g->lock);
	struct share_member *m = share_order_next(&g->order, w->seen > 0 ? &w->last : NULL);
	w->seen++;
	if (m)
		w->last = m->at;
	return share_job(m);
}

struct job *
jobs_share_held(struct engine *g, const uint8_t device[32])
{
	struct share_walk w = {.seen = 0};
	struct job *first = NULL, *j;

	while ((j = jobs_share_next(g, &w))) {
		if (first && first->member.priority > j->member.priority)
			break;
		if (!invites_awaits(j, device) || (first && first->facts.serial < j->facts.serial))
			continue;
		if (first)
			first->users--;
		first = j;
		first->users++;
	}
	return first;
}

/* --- after a restart */

#define ROUNDS_MAX 10000
/* Less than a thousandth is left of what was before. */
#define LOOK_BACK_S (10.0 * SHARE_HALF_LIFE_MS / SECOND_MS)

/* What a device's work comes to that never pauses: a round may have taken longer, or seem to have, where the clock was set meanwhile. */
#define WORKED_MOST_S (SHARE_HALF_LIFE_MS / (M_LN2 * SECOND_MS))

/* A round's devices worked from its opening to its end, as far as anybody knows: most ask when it opens. ERR_CLOSED: that was all. */
static enum err
add_round(void *ctx, const struct store_round *r)
{
	struct job *j = ctx;
	const double age = clock_wall() - r->closed_at, took = r->closed_at - r->opened_at;
	const uint64_t devices = r->invited > r->reports ? r->invited : r->reports;

	if (states_round_is_open(r->state) || age < 0 || took < 0)
		return ERR_OK;
	if (age > LOOK_BACK_S)
		return ERR_CLOSED;
	const double left = exp2(-age * SECOND_MS / SHARE_HALF_LIFE_MS);
	share_charge(
	    &j->member.use, (double)devices * fmin(took, WORKED_MOST_S) * left, clock_ms());
	return ERR_OK;
}

enum err
jobs_share_load(struct store_db *db, struct job *j)
{
	enum err e = store_round_back(db, j->facts.id, ROUNDS_MAX, add_round, j);

	return e == ERR_CLOSED ? ERR_OK : e;
}

void
jobs_share_restart(struct engine *g, struct job *j)
{
	if (clock_wall() - j->facts.created_at < (double)SHARE_HALF_LIFE_MS / SECOND_MS &&
	    j->member.is_in)
		share_order_raise(&g->order, &j->member, clock_ms());
}

struct job *
jobs_share_at(const struct engine *g, size_t i)
{
	return i < g->order.count ? share_job(g->order.items[i]) : NULL;
}

int64_t
jobs_share_priority(const struct job *j)
{
	return j->member.priority;
}
