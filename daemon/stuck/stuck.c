#include "stuck.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long facts must give a verdict before it is shown: one that is certain from what devices were told; one that only follows from their
 * silence, or from a pause between two tasks. */
#define CERTAIN_MS 3000
#define SILENCE_MS 60000
#define ALIKE 3 /* a round that is opened again so often for one reason */

static const struct kind {
	const char *name, *advice;
} kinds[STUCK_KINDS] = {
    [STUCK_NONE] = {"", ""},
    [STUCK_PAUSED] = {"paused", "\"rivulet job resume\" lets it go on"},
    [STUCK_HALTED] = {"halted",
	"fix what the reason says, then \"rivulet job resume\"; \"rivulet job show\" has its last "
	"rounds"},
    [STUCK_SET_ASIDE] = {"set-aside",
	"put back the file that the reason names, as the coordinator's user: a backup has it, and "
	"often, of a model, models/ in a device's home. The job then goes on by itself; or stop "
	"it, "
	"and submit it again with --init JOB --round N"},
    [STUCK_NOT_READY] = {"not-ready",
	"fix what the reason says; the coordinator then goes on by itself"},
    [STUCK_FOLD] = {"fold",
	"fix what the reason says; the round is then folded by itself, within a minute"},
    [STUCK_SPOOL_FULL] = {"spool-full", "raise [spool] quota, or stop jobs"},
    [STUCK_NO_EVALUATION] = {"no-evaluation",
	"as evaluate.by says: \"coordinator\": give it the data set of evaluate.data ([data NAME], "
	"then reload); \"devices\": give them a trainer that evaluates; \"program\": start the "
	"evaluator's program, as the device that evaluate names"},
    [STUCK_NO_DEVICES] = {"no-devices",
	"let devices join (\"rivulet token create\"), or give those that are there what \"select\" "
	"wants (\"rivulet device set\")"},
    [STUCK_SUSPENDED] = {"suspended", "\"rivulet device resume\" lets them work again"},
    [STUCK_SILENT] = {"silent",
	"see whether they run and reach the coordinator: \"rivulet device list\", and \"rivulet "
	"doctor\" on one of them"},
    [STUCK_NO_DATA] = {"no-data",
	"give devices the data set ([data NAME] in their settings), lower round.goal and "
	"round.quorum (\"rivulet job set\"), or submit it again with lower data.min_examples"},
    [STUCK_NO_TRAINER] = {"no-trainer",
	"give devices the trainer ([trainer NAME] in their settings)"},
    [STUCK_OLD_AGENT] = {"old-agent",
	"update the devices' agents, or leave out of the document what they do not know"},
    [STUCK_NO_MEMORY] = {"out-of-memory",
	"raise memory_bytes of devices that have more, or submit a job that takes less "
	"(\"rivulet job plan\")"},
    [STUCK_JOB_FULL] = {"job-full",
	"bring back the devices that it counts, or submit it again with more "
	"local.control_variates.devices"},
    [STUCK_OWNERS] = {"owner-limits",
	"wait for what the owners allow (hours, power, traffic), or ask them to allow more; "
	"\"rivulet device show\" says what keeps one"},
    [STUCK_GAVE_UP] = {"gave-up",
	"\"rivulet job show\" has their last words, as far as their owners let them go "
	"(send_log), the devices' logs have all. Mend the trainer or the data there: they try "
	"again when the round is opened again, at its deadline. Or stop the job; after "
	"\"not-finite\" submit one with a lower rate"},
    [STUCK_TOO_SLOW] = {"too-slow",
	"\"rivulet job set\" with a longer round.deadline_s or a lower round.quorum; or submit "
	"less "
	"local work"},
    [STUCK_TOO_FEW] = {"too-few",
	"let more devices join, or lower round.quorum (\"rivulet job set\")"},
};

const char *
stuck_name(enum stuck_kind kind)
{
	assert(kind < STUCK_KINDS);
	return kinds[kind].name;
}

const char *
stuck_advice(enum stuck_kind kind)
{
	assert(kind < STUCK_KINDS);
	return kinds[kind].advice;
}

/* --- words, appended as far as there is room */

static void __attribute__((format(printf, 2, 3))) say(char *out, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, STUCK_REASON_MAX - len, fmt, ap);
	va_end(ap);
}

struct list {
	char *out;
	const char *what;
	uint64_t total;
	bool begun;
};

/* "; 3 gave up (trainer-failed 2, ", and so on. */
static void
add(struct list *l, const char *word, uint32_t count)
{
	if (count == 0)
		return;
	if (!l->begun)
		say(l->out, "; %llu %s (", (unsigned long long)l->total, l->what);
	else
		say(l->out, ", ");
	say(l->out, "%s %u", *word ? word : "other", count);
	l->begun = true;
}

static void
end(const struct list *l)
{
	if (l->begun)
		say(l->out, ")");
}

/* --- what devices are told and did */

static bool
is_ready(enum wait_reason r)
{
	return r == WAIT_NONE || r == WAIT_NOT_SELECTED || r == WAIT_REPORTED || r == WAIT_UNSENT;
}

/* Does this reason keep a device from working, of the devices that the job selects? */
static bool
keeps(enum wait_reason r)
{
	return !is_ready(r) && r != WAIT_INELIGIBLE;
}

static uint64_t
waiting(const struct device_status *s)
{
	uint64_t n = 0;

	for (enum wait_reason r = WAIT_NONE; r < WAIT_UNKNOWN; r++)
		n += keeps(r) ? s->waiting[r] : 0;
	return n;
}

static uint64_t
gave_up(const struct device_status *s)
{
	uint64_t n = 0;

	for (enum abort_reason r = ABORT_NONE; r <= ABORT_UNKNOWN; r++)
		n += s->gave_up[r];
	return n;
}

static enum stuck_kind
kind_of_wait(enum wait_reason r, bool evaluates)
{
	switch (r) {
	case WAIT_NO_DATA:
		return STUCK_NO_DATA;
	case WAIT_NO_TRAINER:
		return evaluates ? STUCK_NO_EVALUATION : STUCK_NO_TRAINER;
	case WAIT_NO_CODEC:
	case WAIT_OLD_AGENT:
		return evaluates ? STUCK_NO_EVALUATION : STUCK_OLD_AGENT;
	case WAIT_NO_FIGURES:
		return STUCK_NO_EVALUATION;
	case WAIT_TOO_MANY_EXAMPLES:
		return STUCK_OLD_AGENT;
	case WAIT_ABORTED:
	case WAIT_RESTING:
		return STUCK_GAVE_UP;
	case WAIT_JOB_FULL:
		return STUCK_JOB_FULL;
	case WAIT_OUT_OF_MEMORY:
		return STUCK_NO_MEMORY;
	case WAIT_SPOOL_FULL:
		return STUCK_SPOOL_FULL;
	default:
		return wait_reason_is_owners(r) ? STUCK_OWNERS : STUCK_TOO_FEW;
	}
}

enum stuck_kind
stuck_of_abort(enum abort_reason r)
{
	if (r == ABORT_DEADLINE)
		return STUCK_TOO_SLOW;
	if (r == ABORT_STOPPED)
		return STUCK_SILENT;
	if (r == ABORT_OUT_OF_MEMORY)
		return STUCK_NO_MEMORY;
	return r == ABORT_REFUSED || abort_reason_passes(r) ? STUCK_OWNERS : STUCK_GAVE_UP;
}

/* Devices that asked for work lately, and for which this job was not considered, as they have tasks of other jobs. Their turn will come. */
static uint64_t
busy(const struct stuck_facts *f)
{
	const uint64_t known = f->status.ready + waiting(&f->status) + gave_up(&f->status);
	const uint64_t others = f->reach.heard > known ? f->reach.heard - known : 0;

	return others < f->elsewhere ? others : f->elsewhere;
}

/* Devices of which nothing is known. */
static uint64_t
silent(const struct stuck_facts *f)
{
	const uint64_t known =
	    f->status.ready + waiting(&f->status) + gave_up(&f->status) + busy(f);

	return f->reach.devices > known ? f->reach.devices - known : 0;
}

/* The reason that keeps most of the devices from working for the job. */
static enum stuck_kind
main_cause(const struct stuck_facts *f)
{
	uint64_t by_kind[STUCK_KINDS] = {0};
	enum stuck_kind most = STUCK_TOO_FEW;

	for (enum wait_reason r = WAIT_NONE; r < WAIT_UNKNOWN; r++)
		if (keeps(r))
			by_kind[kind_of_wait(r, f->evaluates)] += f->status.waiting[r];
	for (enum abort_reason r = ABORT_NONE; r <= ABORT_UNKNOWN; r++)
		by_kind[stuck_of_abort(r)] += f->status.gave_up[r];
	by_kind[STUCK_SUSPENDED] += f->reach.suspended;
	by_kind[STUCK_SILENT] += silent(f);
	for (enum stuck_kind k = STUCK_NONE + 1; k < STUCK_KINDS; k++)
		if (by_kind[k] > 0 && by_kind[k] >= by_kind[most])
			most = k;
	return most;
}

static void
say_devices(const struct stuck_facts *f, char *out)
{
	const struct device_status *s = &f->status;
	struct list wait = {.out = out, .what = "wait", .total = waiting(s)};
	struct list gave = {.out = out, .what = "gave up", .total = gave_up(s)};

	for (enum wait_reason r = WAIT_NONE; r < WAIT_UNKNOWN; r++)
		if (keeps(r))
			add(&wait, wait_reason_name(r), s->waiting[r]);
	end(&wait);
	for (enum abort_reason r = ABORT_NONE; r <= ABORT_UNKNOWN; r++)
		add(&gave, abort_reason_name(r), s->gave_up[r]);
	end(&gave);
	if (f->knows_reach && silent(f) > 0)
		say(out, "; %llu did not ask for work lately", (unsigned long long)silent(f));
	if (f->knows_reach && f->reach.suspended > 0)
		say(out, "; %llu %s suspended", (unsigned long long)f->reach.suspended,
		    f->reach.suspended == 1 ? "is" : "are");
}

/* --- the round */

/* Reports that the round has or that devices may bring, by what is known of them now. */
static uint64_t
in_sight(const struct stuck_facts *f)
{
	const uint64_t ready = (uint64_t)f->status.ready * f->per_device;
	const uint64_t tasks = (uint64_t)f->accepted + f->out;

	return ready > tasks ? ready : tasks;
}

bool
stuck_wants_reach(const struct stuck_facts *f)
{
	return f->state == JOB_RUNNING && f->is_open && in_sight(f) < f->quorum;
}

/* The verdict when too few devices can work for the job. */
static uint32_t
judge_reach(const struct stuck_facts *f, struct stuck *out)
{
	const struct stuck_reach *r = &f->reach;
	const uint64_t sight = in_sight(f), turn = busy(f) * f->per_device;
	const uint64_t unheard = silent(f) * f->per_device;

	if (sight + turn >= f->quorum)
		return 0;
	if (r->devices == 0)
		out->kind = r->suspended > 0 ? STUCK_SUSPENDED : STUCK_NO_DEVICES;
	else
		out->kind = main_cause(f);
	say(out->reason, "round %llu needs %u reports, and %llu can come",
	    (unsigned long long)f->round, f->quorum, (unsigned long long)sight);
	if (r->devices == 0 && r->suspended == 0)
		say(out->reason, ": no device that it selects has joined");
	else
		say_devices(f, out->reason);
	return sight + turn + unheard >= f->quorum ? SILENCE_MS : CERTAIN_MS;
}

/* The verdict when the round was opened again and again. */
static uint32_t
judge_reopened(const struct stuck_facts *f, struct stuck *out)
{
	const struct stuck_reopened *r = f->reopened;

	out->kind = r->why;
	say(out->reason, "round %llu was opened again %u times with %u of %u reports",
	    (unsigned long long)f->round, r->times, f->accepted, f->quorum);
	if (r->tasks[STUCK_TOO_SLOW] > 0)
		say(out->reason, "; %u %s not answered within %.6g s", r->tasks[STUCK_TOO_SLOW],
		    r->tasks[STUCK_TOO_SLOW] == 1 ? "task was" : "tasks were", f->deadline_s);
	say_devices(f, out->reason);
	return 0;
}

static uint32_t
judge_round(const struct stuck_facts *f, struct stuck *out)
{
	if (f->reopened->times >= ALIKE && f->reopened->round == f->round &&
	    f->accepted < f->quorum)
		return judge_reopened(f, out);
	return stuck_wants_reach(f) && f->knows_reach ? judge_reach(f, out) : 0;
}

static uint32_t
judge_paused(const struct stuck_facts *f, struct stuck *out)
{
	out->kind = f->aside ? STUCK_SET_ASIDE : f->by_hand ? STUCK_PAUSED : STUCK_HALTED;
	say(out->reason, "%s", f->reason);
	return 0;
}

uint32_t
stuck_judge(const struct stuck_facts *f, struct stuck *out)
{
	*out = (struct stuck){.kind = STUCK_NONE};
	if (!states_job_lives(f->state))
		return 0;
	if (f->state == JOB_PAUSED || f->aside)
		return judge_paused(f, out);
	if (f->unready) {
		out->kind = STUCK_NOT_READY;
		say(out->reason, "%s: %s", wait_reason_name(f->unready), f->detail);
		return 0;
	}
	if (f->fold_failures >= ALIKE) {
		out->kind = STUCK_FOLD;
		say(out->reason, "%s", f->reason);
		return 0;
	}
	uint32_t patience = f->is_open ? judge_round(f, out) : 0;
	if (!out->kind && f->evaluation[0]) {
		out->kind = STUCK_NO_EVALUATION;
		say(out->reason, "its models have no figures: %s", f->evaluation);
	}
	return patience;
}

/* --- over time */

/* Devices that try again and fail again are not a change: only a report is one. */
static bool
outlasts(enum stuck_kind k)
{
	return k == STUCK_GAVE_UP || k == STUCK_TOO_SLOW;
}

static bool
stands(const struct stuck_watch *w, const struct stuck_facts *f)
{
	return outlasts(w->said.kind) && f->state == JOB_RUNNING && !f->aside && f->is_open &&
	    f->round == w->round && f->accepted == w->accepted;
}

bool
stuck_watch_step(struct stuck_watch *w, const struct stuck_facts *f, uint64_t now_ms)
{
	struct stuck now;
	const uint32_t patience = stuck_judge(f, &now);

	if (now.kind != w->seen) {
		w->seen = now.kind;
		w->seen_ms = now_ms;
	}
	if (now.kind == w->said.kind) {
		w->said = now;
		return false;
	}
	if (now_ms - w->seen_ms < patience || (!now.kind && stands(w, f)))
		return false;
	w->said = now;
	w->round = f->round;
	w->accepted = f->accepted;
	return true;
}

void
stuck_reopen(
    struct stuck_reopened *r, uint64_t round, uint32_t accepted, const uint32_t tasks[STUCK_KINDS])
{
	enum stuck_kind why = STUCK_TOO_FEW;

	for (enum stuck_kind k = STUCK_NONE + 1; k < STUCK_KINDS; k++)
		if (tasks[k] > tasks[why])
			why = k;
	const bool alike = r->round == round && r->why == why && r->accepted == accepted;
	r->times = alike ? r->times + 1 : 1;
	r->round = round;
	r->why = why;
	r->accepted = accepted;
	memcpy(r->tasks, tasks, sizeof(r->tasks));
}
