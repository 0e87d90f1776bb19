#include "age.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "audit.h"
#include "audit_rows.h"
#include "clock.h"
#include "json.h"
#include "log.h"
#include "past_rows.h"
#include "record.h"
#include "store.h"

#define DATE_MAX 32

static const char *const names[] = {
    [AGE_BELIEVED] = "",
    [AGE_STEPPED] = "clock-stepped",
    [AGE_EARLIER] = "clock-earlier",
    [AGE_LATER] = "clock-later",
};

/* Both clocks at one moment. */
struct reading {
	double wall, elapsed; /* seconds */
};

struct age {
	const struct services *services; /* for the audit log */
	struct store *store;
	pthread_mutex_t lock; /* of all below */
	enum age_doubt doubt;
	double since;
	double newest; /* durable, or on its way */
	uint64_t steps;
	struct reading start;
	/* Where the clock should be: known once it was believed, or from the row of a step. */
	bool anchored;
	double offset; /* wall minus elapsed */
	uint64_t store_ms; /* by clock_ms, when it is stored again */
};

/* What is to be stored, and what is logged then. */
struct marks {
	struct age *age;
	enum age_doubt doubt;
	struct reading now;
	double offset;
	bool turned;
	char detail[256];
};

const char *
age_doubt_name(enum age_doubt d)
{
	return names[d];
}

static struct reading
read_clocks(void)
{
	return (struct reading){clock_wall(), (double)clock_elapsed_ms() / 1000};
}

/* --- the judgement */

static enum age_doubt
judge_start(double newest, double wall, double up)
{
	if (newest == 0)
		return AGE_BELIEVED;
	if (wall < newest - AGE_SLACK_S)
		return AGE_EARLIER;
	return wall > newest + AGE_LATER_S + up ? AGE_LATER : AGE_BELIEVED;
}

static enum age_doubt
judge(const struct age *a, struct reading now)
{
	if (!a->anchored)
		return judge_start(a->newest, now.wall, now.elapsed - a->start.elapsed);
	return fabs(now.wall - now.elapsed - a->offset) > AGE_STEP_S ? AGE_STEPPED : AGE_BELIEVED;
}

static void
print_date(char out[DATE_MAX], double seconds)
{
	time_t t = isfinite(seconds) && fabs(seconds) < 1e11 ? (time_t)seconds : 0;
	struct tm tm = {.tm_mday = 1};

	gmtime_r(&t, &tm);
	if (strftime(out, DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
}

/* out: what is wrong with the clock and what to do; "" while it is believed. Lock held. */
static void
describe(const struct age *a, struct reading now, char *out, size_t room)
{
	const double should = a->anchored ? now.elapsed + a->offset : a->newest;
	const double days = (now.wall - should) / 86400;
	char here[DATE_MAX], there[DATE_MAX];

	out[0] = '\0';
	print_date(here, now.wall);
	print_date(there, should);
	if (a->doubt == AGE_STEPPED)
		snprintf(out, room,
		    "the clock, %s, should be at %s by the time that passed (%+.2f days): ", here,
		    there, days);
	else if (a->doubt == AGE_EARLIER)
		snprintf(out, room,
		    "the clock, %s, is earlier than the newest time stored here, %s: ", here,
		    there);
	else if (a->doubt == AGE_LATER)
		snprintf(out, room,
		    "the clock, %s, is %.1f days later than the newest time stored here: ", here,
		    days);
	size_t used = 0;
	while (out[used])
		used++;
	if (used > 0)
		snprintf(out + used, room - used,
		    "nothing is deleted for its age. Set the clock, or, if it is right, \"rivulet "
		    "clock confirm\"");
}

/* --- rows */

static enum err
put_seconds(struct store_db *db, const char *key, double v)
{
	return store_meta_put(db, key, (uint64_t)(int64_t)v);
}

/* *out: the stored time of this key; 0 if there is none. */
static enum err
get_seconds(struct store_db *db, const char *key, double *out)
{
	uint64_t v = 0;

	enum err e = store_meta_get(db, key, &v);
	*out = e ? 0 : (double)(int64_t)v;
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

/* Sets dates in rows that had to wait until the clock was believed. */
static enum err
settle(struct store_db *db, double now)
{
	enum err e = store_keys_dated(db, now);

	return e ? e : store_past_dated(db, now);
}

/* Stores where the clock should be: as an offset from the monotonic clock of this boot, and as a time for the next boot. */
static enum err
put_step(struct store_db *db, const struct marks *m)
{
	const double should = m->now.elapsed + m->offset;
	enum err e = put_seconds(db, "clock_offset", m->offset);

	if (!e)
		e = put_seconds(db, "clock_elapsed", m->now.elapsed);
	if (!e)
		e = put_seconds(db, "clock_should", should);
	return e ? e : put_seconds(db, "clock_ahead", m->now.wall - should);
}

static enum err
write_marks(struct store_db *db, void *arg, struct why *why)
{
	const struct marks *m = arg;
	enum err e = store_meta_put(db, "clock_stepped", m->doubt == AGE_STEPPED);

	(void)why;
	if (!e && m->doubt == AGE_STEPPED)
		e = put_step(db, m);
	if (!e && m->doubt == AGE_BELIEVED)
		e = put_seconds(db, "clock_newest", m->now.wall);
	return !e && m->doubt == AGE_BELIEVED ? settle(db, m->now.wall) : e;
}

static void
tell(const struct marks *m)
{
	if (!m->turned)
		return;
	if (m->doubt == AGE_BELIEVED)
		log_event(LOG_LEVEL_INFO, "clock.believed",
		    LOG_S("why", "it is where it should be: what is old may be deleted again"));
	else
		log_event(LOG_LEVEL_WARN, "clock.doubted",
		    LOG_S("reason", age_doubt_name(m->doubt)), LOG_S("why", m->detail));
}

static void
written(void *arg, enum err e, const struct why *why)
{
	struct marks *m = arg;

	if (e)
		log_event(LOG_LEVEL_ERROR, "store.failed", LOG_S("why", why->text));
	tell(m);
	free(m);
}

/* Lock held, so that rows come in the order of what was seen. */
static void
store_marks(struct age *a, struct reading now, bool turned)
{
	/* A start's doubt is found anew by the next. */
	if (!turned && a->doubt != AGE_BELIEVED && a->doubt != AGE_STEPPED)
		return;
	struct marks *m = calloc(1, sizeof(*m));

	a->store_ms = clock_ms() + AGE_STORED_MS;
	if (a->doubt == AGE_BELIEVED)
		a->newest = now.wall;
	if (!m)
		return;
	*m = (struct marks){a, a->doubt, now, a->offset, turned, ""};
	describe(a, now, m->detail, sizeof(m->detail));
	if (store_submit(a->store, write_marks, written, m)) {
		tell(m);
		free(m);
	}
}

/* --- looking. Lock held */

static void
look(struct age *a, struct reading now)
{
	const enum age_doubt before = a->doubt;

	a->doubt = judge(a, now);
	if (a->doubt == AGE_BELIEVED && !a->anchored) {
		a->anchored = true;
		a->offset = now.wall - now.elapsed;
	}
	if (a->doubt == before)
		return;
	a->since = a->doubt ? now.wall : 0;
	a->steps += a->doubt == AGE_STEPPED;
	store_marks(a, now, true);
}

bool
age_now(struct age *a, double *now)
{
	if (!a) {
		*now = clock_wall();
		return true;
	}
	pthread_mutex_lock(&a->lock);
	const struct reading r = read_clocks();
	look(a, r);
	const bool believed = a->doubt == AGE_BELIEVED;
	pthread_mutex_unlock(&a->lock);
	*now = r.wall;
	return believed;
}

double
age_stamp(struct age *a)
{
	double now;

	return age_now(a, &now) ? now : NAN;
}

double
age_latest(struct age *a)
{
	double now;

	if (age_now(a, &now))
		return now;
	pthread_mutex_lock(&a->lock);
	const double elapsed = (double)clock_elapsed_ms() / 1000;
	const double least =
	    a->anchored ? elapsed + a->offset : a->newest + elapsed - a->start.elapsed;
	pthread_mutex_unlock(&a->lock);
	return fmax(now, least);
}

void
age_tick(struct age *a)
{
	pthread_mutex_lock(&a->lock);
	const struct reading now = read_clocks();
	look(a, now);
	if (clock_ms() >= a->store_ms)
		store_marks(a, now, false);
	pthread_mutex_unlock(&a->lock);
}

void
age_report(struct age *a, struct age_report *out)
{
	*out = (struct age_report){.doubt = AGE_BELIEVED};
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	const struct reading now = read_clocks();
	look(a, now);
	out->doubt = a->doubt;
	out->since_seconds = a->since;
	out->newest_seconds = a->newest;
	out->steps_total = a->steps;
	describe(a, now, out->detail, sizeof(out->detail));
	pthread_mutex_unlock(&a->lock);
}

/* --- an administrator's word */

struct confirmation {
	struct age *age;
	const char *by;
	struct marks marks;
	enum age_doubt doubt;
	double newest;
};

static enum err
write_confirmation(struct store_db *db, void *arg, struct why *why)
{
	struct confirmation *c = arg;
	struct json *facts = json_object(), *detail = json_object();

	json_add_string(facts, "reason", age_doubt_name(c->doubt));
	json_add_double(facts, "newest", c->newest);
	json_add_string(detail, "by", c->by);
	enum err e = write_marks(db, &c->marks, why);
	if (!e)
		return audit_append(db, c->age->services,
		    &(struct audit_event){
			.event = RECORD_CLOCK_CONFIRMED, .facts = facts, .detail = detail},
		    why);
	json_free(facts);
	json_free(detail);
	return e;
}

enum err
age_confirm(struct age *a, const char *by, bool *changed, struct why *why)
{
	pthread_mutex_lock(&a->lock);
	const struct reading now = read_clocks();
	look(a, now);
	struct confirmation c = {.age = a,
	    .by = by,
	    .marks = {a, AGE_BELIEVED, now, now.wall - now.elapsed, false, ""},
	    .doubt = a->doubt,
	    .newest = a->newest};
	pthread_mutex_unlock(&a->lock);
	*changed = c.doubt != AGE_BELIEVED;
	if (!*changed)
		return ERR_OK;
	/* Durable first: what was answered survives a restart. A step meanwhile is found by the next look. */
	enum err e = store_write(a->store, write_confirmation, &c, why);
	if (e)
		return e;
	pthread_mutex_lock(&a->lock);
	a->anchored = true;
	a->offset = c.marks.offset;
	a->newest = now.wall;
	a->doubt = AGE_BELIEVED;
	a->since = 0;
	pthread_mutex_unlock(&a->lock);
	log_event(LOG_LEVEL_INFO, "clock.confirmed", LOG_S("reason", age_doubt_name(c.doubt)),
	    LOG_S("by", by));
	return ERR_OK;
}

/* --- beginning and end */

struct latest {
	double before, at;
};

static enum err
note_seen(void *ctx, const struct store_seen *s)
{
	struct latest *l = ctx;

	if (s->last_contact <= l->before && s->last_contact > l->at)
		l->at = floor(s->last_contact);
	return ERR_OK;
}

/* *out: the newest stored time. In a database without one: the time of the last audit entry, or of a later contact of a device, since a
 * fleet without work leaves no entries. Contacts in the future are passed over, as a wrong clock noted them. */
static enum err
read_newest(struct store_db *db, double *out)
{
	uint8_t link[RECORD_LEN];
	struct record r;

	enum err e = get_seconds(db, "clock_newest", out);
	if (e || *out != 0)
		return e;
	e = store_audit_last(db, link);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	if (!record_decode(&r, link, sizeof(link), NULL))
		*out = floor((double)r.at_ms / 1000);
	struct latest l = {.before = clock_wall(), .at = *out};
	e = store_seen_each(db, note_seen, &l);
	*out = l.at;
	return e;
}

/* A clock that had stepped is right again after a boot if it is neither where it should not be yet nor where the step had put it, which
 * the boot took no longer than. */
static bool
is_back(double should, double ahead, double wall)
{
	return judge_start(should, wall, 0) == AGE_BELIEVED &&
	    (ahead < 0 || wall < should + ahead - AGE_STEP_S);
}

/* In this boot the clock should be where it was put off from; in another, at least where it should have been in that. */
static enum err
read_step(struct store_db *db, struct age *a)
{
	const struct reading now = read_clocks();
	double elapsed, should, ahead;

	enum err e = get_seconds(db, "clock_offset", &a->offset);
	if (!e)
		e = get_seconds(db, "clock_elapsed", &elapsed);
	if (!e)
		e = get_seconds(db, "clock_should", &should);
	if (!e)
		e = get_seconds(db, "clock_ahead", &ahead);
	a->anchored = true;
	if (!e && now.elapsed < elapsed)
		a->offset = (is_back(should, ahead, now.wall) ? now.wall : should) - now.elapsed;
	return e;
}

static enum err
read_marks(struct store_db *db, void *arg, struct why *why)
{
	struct age *a = arg;
	uint64_t stepped = 0;

	(void)why;
	enum err e = read_newest(db, &a->newest);
	if (!e)
		e = store_meta_get(db, "clock_stepped", &stepped);
	if (e || stepped == 0)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	return read_step(db, a);
}

enum err
age_of_database(struct store_db *db, enum age_doubt *out)
{
	struct age a = {.start = read_clocks()};

	enum err e = read_marks(db, &a, NULL);
	/* A step that a coordinator has seen: where the clock should be counts from its own start. */
	*out = judge(&a, read_clocks());
	return e;
}

enum err
age_new(struct age **out, const struct services *s, struct store *store, struct why *why)
{
	struct age *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(why, ERR_NOMEM, "no memory");
	a->services = s;
	a->store = store;
	pthread_mutex_init(&a->lock, NULL);
	enum err e = store_read(store, read_marks, a, why);
	if (e) {
		age_free(a);
		return e;
	}
	pthread_mutex_lock(&a->lock);
	a->start = read_clocks();
	look(a, a->start);
	store_marks(a, a->start, false);
	pthread_mutex_unlock(&a->lock);
	*out = a;
	return ERR_OK;
}

void
age_stop(struct age *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	const struct reading now = read_clocks();
	look(a, now);
	store_marks(a, now, false);
	pthread_mutex_unlock(&a->lock);
}

void
age_free(struct age *a)
{
	if (!a)
		return;
	pthread_mutex_destroy(&a->lock);
	free(a);
}
