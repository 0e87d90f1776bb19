#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "bytes.h"
#include "clock.h"
#include "device_status.h"
#include "engine.h"
#include "hex.h"
#include "job_list.h"
#include "json.h"
#include "registry.h"
#include "services.h"
#include "store.h"
#include "throughput.h"
#include "view.h"

/* How much devices of each speed did for a job; and the fleet as this coordinator knows it, for a simulation. */

#define DECILES 10
#define NAMES_MAX 20
#define SPEEDS_PIECE 500 /* rows in one turn */
#define REPORTS_PIECE 10000 /* rows of an index, which are only counted */
#define COUNTED_PER_ROW 16 /* of those cost as much as one that is looked at */
/* The share of time that a device was there is given only if it was measured over at least so many seconds. */
#define AVAILABLE_MIN_S 60

/* --- who took part in a job */

struct member {
	uint8_t id[32];
	struct throughput speed;
	uint64_t reports; /* in committed rounds */
	double rate; /* steps a second; 0: never measured */
};

struct participation {
	uint8_t job[16];
	struct job_spec spec;
	struct member *members; /* by id, then by rate */
	size_t count, room;
	struct json *never; /* names of the first few devices that never reported */
	uint64_t never_count;
	struct exchange *x;
	/* What was read, so that the rest is read in another turn. */
	struct store_speed last;
	uint64_t speeds; /* rows of speeds in this piece */
	uint64_t from, to, rounds; /* rounds of the next piece; rounds in all */
};

/* The member of this id, made if there is none. Rows come in the order of devices, so mostly the last member. NULL: no memory. */
static struct member *
member(struct participation *p, const uint8_t id[32])
{
	size_t at = bytes_place(p->members, p->count, sizeof(*p->members), id, 32);

	if (at < p->count && memcmp(p->members[at].id, id, 32) == 0)
		return &p->members[at];
	struct member *all = bytes_grow(p->members, p->count, &p->room, sizeof(*all));
	if (!all)
		return NULL;
	p->members = all;
	memmove(&all[at + 1], &all[at], (p->count++ - at) * sizeof(*all));
	all[at] = (struct member){.reports = 0};
	memcpy(all[at].id, id, 32);
	return &all[at];
}

static enum err
add_speed(void *ctx, const struct store_speed *row)
{
	struct participation *p = ctx;
	struct member *m = member(p, row->device);

	if (!m)
		return ERR_NOMEM;
	throughput_note(&m->speed, row->steps, row->seconds);
	p->last = *row;
	p->speeds++;
	return ERR_OK;
}

static enum err
add_reports(void *ctx, const uint8_t device[32], uint64_t reports)
{
	struct member *m = member(ctx, device);

	if (!m)
		return ERR_NOMEM;
	m->reports += reports;
	return ERR_OK;
}

static enum err
read_job(struct store_db *db, void *arg, struct why *why)
{
	struct participation *p = arg;
	struct store_job row = {.document = NULL};
	struct store_round last;

	enum err e = store_job_get(db, p->job, &row);
	if (!e)
		e = job_parse(&p->spec, row.document, row.document_len, why);
	free(row.document);
	if (!e)
		e = store_round_last(db, p->job, &last);
	p->rounds = e ? 0 : last.round;
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
read_speeds(struct store_db *db, void *arg, struct why *why)
{
	struct participation *p = arg;
	bool first = p->speeds == 0;

	(void)why;
	p->speeds = 0;
	return store_speed_after(db, p->job, first ? NULL : &p->last, SPEEDS_PIECE, add_speed, p);
}

/* Adds rounds to a piece until they have enough reports: at least one round. */
static enum err
add_round(void *ctx, const struct store_round *r)
{
	struct participation *p = ctx;

	p->to = r->round;
	p->speeds += r->reports + 1;
	return p->speeds >= REPORTS_PIECE ? ERR_CLOSED : ERR_OK;
}

static enum err
read_reports(struct store_db *db, void *arg, struct why *why)
{
	struct participation *p = arg;

	(void)why;
	p->speeds = 0;
	p->to = p->rounds;
	enum err e = store_round_each(db, p->job, p->from, REPORTS_PIECE, add_round, p);
	return e && e != ERR_CLOSED
	    ? e
	    : store_speed_reports(db, p->job, p->from, p->to, add_reports, p);
}

/* Reads the members in pieces, so that others read in between. */
static enum err
read_members(struct participation *p, struct why *why)
{
	struct store *store = p->x->services->store;

	enum err e = store_read(store, read_job, p, why);
	do {
		e = e ? e : store_read(store, read_speeds, p, why);
		exchange_looked(p->x, p->speeds);
	} while (!e && p->speeds == SPEEDS_PIECE);
	for (p->from = 1; !e && p->from <= p->rounds; p->from = p->to + 1) {
		e = store_read(store, read_reports, p, why);
		exchange_looked(p->x, p->speeds / COUNTED_PER_ROW);
	}
	return e;
}

/* Counts an active device that the job selects, and of which no model of the job has a delta. */
static enum err
look_at(void *ctx, const struct registry_view *d)
{
	struct participation *p = ctx;
	const uint8_t *id = d->row.id;
	size_t at = bytes_place(p->members, p->count, sizeof(*p->members), id, 32);
	bool known = at < p->count && memcmp(p->members[at].id, id, 32) == 0;

	exchange_looked(p->x, 1);
	if (d->row.state != DEVICE_ACTIVE || strcmp(d->row.role, "device") != 0 ||
	    (known && p->members[at].reports > 0) ||
	    !jobs_selects(p->x->services->engine, p->job, &p->spec, id))
		return ERR_OK;
	if (p->never_count++ < NAMES_MAX)
		json_push(p->never, json_new_string(d->row.name));
	return ERR_OK;
}

static int
compare_rates(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate < y->rate ? -1 : 1;
	return memcmp(x->id, y->id, sizeof(x->id));
}

/* A decile as JSON: the members [from, to) in the order of rates. */
static struct json *
decile_json(const struct participation *p, unsigned decile, size_t from, size_t to)
{
	struct json *v = json_object();
	uint64_t reports = 0;

	for (size_t i = from; i < to; i++)
		reports += p->members[i].reports;
	json_add_u64(v, "decile", decile);
	json_add_u64(v, "devices", to - from);
	json_add_u64(v, "reports", reports);
	json_add_double(v, "steps_per_s_min", p->members[from].rate);
	json_add_double(v, "steps_per_s_max", p->members[to - 1].rate);
	return v;
}

/* The deciles, the slowest first; with fewer than ten devices some deciles are empty and left out. */
static struct json *
deciles_json(const struct participation *p, size_t first)
{
	struct json *list = json_array();
	size_t n = p->count - first;

	for (unsigned k = 0; k < DECILES; k++) {
		size_t from = first + n * k / DECILES, to = first + n * (k + 1) / DECILES;
		if (to > from)
			json_push(list, decile_json(p, k + 1, from, to));
	}
	return list;
}

static struct json *
participation_json(struct participation *p)
{
	struct json *v = json_object(), *unmeasured = json_object(), *never = json_object();
	uint64_t reports = 0;
	size_t first = 0;

	for (size_t i = 0; i < p->count; i++)
		p->members[i].rate = throughput_median(&p->members[i].speed);
	if (p->count > 0)
		qsort(p->members, p->count, sizeof(*p->members), compare_rates);
	for (; first < p->count && p->members[first].rate <= 0; first++)
		reports += p->members[first].reports;
	json_add(v, "deciles", deciles_json(p, first));
	json_add_u64(unmeasured, "devices", first);
	json_add_u64(unmeasured, "reports", reports);
	json_add(v, "unmeasured", unmeasured);
	json_add_u64(never, "devices", p->never_count);
	json_add(never, "names", p->never);
	p->never = NULL;
	json_add(v, "never", never);
	return v;
}

void
api_participation(struct exchange *x)
{
	struct participation p = {.x = x};
	struct job_view job;
	struct why why = {""};

	if (!hex_decode(p.job, sizeof(p.job), x->param[0], strlen(x->param[0])) ||
	    !engine_job(x->services->engine, p.job, NULL, &job)) {
		exchange_problem(x, PROBLEM_UNKNOWN_JOB, "no such job");
		return;
	}
	if (!exchange_walk(x))
		return;
	p.never = json_array();
	enum err e = read_members(&p, &why);
	if (!e)
		e = registry_each(x->services->registry, NULL, look_at, &p);
	if (e)
		exchange_failed(x, e, &why);
	else
		exchange_json(x, 200, participation_json(&p));
	json_free(p.never);
	job_deinit(&p.spec);
	free(p.members);
}

/* --- the fleet */

/* The speed of a device from its last tasks in one job: the job that it worked for last. */
struct measured {
	uint8_t job[16];
	double samples, seconds; /* of the present job's rows */
	double up_bytes, up_seconds; /* of all jobs' rows */
	double last;
	double rate; /* examples a second, in the job with the latest row */
	uint8_t rated[16];
	uint64_t rows;
};

static enum err
add_row(void *ctx, const struct store_speed *row)
{
	struct measured *m = ctx;

	m->rows++;
	if (memcmp(m->job, row->job, sizeof(m->job)) != 0) {
		memcpy(m->job, row->job, sizeof(m->job));
		m->samples = m->seconds = 0;
	}
	m->samples += row->samples;
	m->seconds += row->seconds;
	m->up_bytes += (double)row->up_bytes;
	m->up_seconds += row->up_seconds;
	if (row->at >= m->last && m->seconds > 0) {
		m->last = row->at;
		m->rate = m->samples / m->seconds;
		memcpy(m->rated, row->job, sizeof(m->rated));
	}
	return ERR_OK;
}

struct measuring {
	const uint8_t *device;
	struct measured out;
};

static enum err
measure(struct store_db *db, void *arg, struct why *why)
{
	struct measuring *m = arg;

	(void)why;
	return store_speed_of(db, m->device, add_row, &m->out);
}

static void
add_known(struct json *v, const char *key, double number, bool known)
{
	if (known)
		json_add_double(v, key, number);
	else
		json_add_null(v, key);
}

/* Adds what the device offers of the data set that was asked for. */
static void
add_offer(struct json *v, struct registry *r, const uint8_t device[32], const char *data)
{
	struct device_status_offer offer;

	(void)device_status_heard(r, device, &(struct device_status_ask_for){data, ""}, &offer);
	if (offer.has_data)
		json_add_u64(v, "examples", offer.examples);
	else
		json_add_null(v, "examples");
	json_add_bool(v, "draws", offer.draws);
	if (offer.memory_bytes > 0)
		json_add_u64(v, "memory_bytes", offer.memory_bytes);
	else
		json_add_null(v, "memory_bytes");
}

static struct json *
profile_json(const struct registry_view *d, const struct measured *m)
{
	struct json *v = json_object();
	char hex[65];
	double tasks = (double)(d->taken + d->aborted);
	double since = clock_seconds() - d->heard_from;
	double share = since > 0 ? d->heard_seconds / since : 0;

	hex_encode(hex, d->row.id, 32);
	json_add_string(v, "device", hex);
	json_add_string(v, "name", d->row.name);
	add_known(v, "samples_per_s", m->rate, m->rate > 0);
	if (m->rate > 0) {
		hex_encode(hex, m->rated, sizeof(m->rated));
		json_add_string(v, "measured_in", hex);
	} else {
		json_add_null(v, "measured_in");
	}
	/* A transfer of no measurable time says nothing of the link. */
	add_known(v, "up_bytes_per_s", m->up_bytes / m->up_seconds, m->up_seconds >= 0.01);
	add_known(
	    v, "available", share < 1 ? share : 1, d->heard_from > 0 && since >= AVAILABLE_MIN_S);
	add_known(v, "failure", (double)d->aborted / tasks, tasks > 0);
	return v;
}

struct fleet_cursor {
	struct exchange *x;
	/* Data set whose examples are shown for each device; "": none. */
	char data[RECIPE_NAME_MAX];
	uint8_t from[32];
};

/* Adds a device's profile to the list. ERR_AGAIN: the device is left for the next piece. */
static enum err
add_profile(void *ctx, const struct registry_view *d)
{
	struct fleet_cursor *at = ctx;
	struct measuring m = {.device = d->row.id};

	if (d->row.state != DEVICE_ACTIVE || strcmp(d->row.role, "device") != 0)
		return ERR_OK;
	if (exchange_list_full(at->x)) {
		memcpy(at->from, d->row.id, sizeof(at->from));
		return ERR_AGAIN;
	}
	enum err e = store_read(at->x->services->store, measure, &m, NULL);
	exchange_looked(at->x, 1 + m.out.rows);
	if (e)
		return e;
	struct json *v = profile_json(d, &m.out);
	if (*at->data)
		add_offer(v, at->x->services->registry, d->row.id, at->data);
	exchange_list_add(at->x, v);
	return ERR_OK;
}

static enum err
fill_fleet(struct exchange *x, void *cursor, struct why *why)
{
	struct fleet_cursor *at = cursor;

	(void)why;
	return registry_each(x->services->registry, at->from, add_profile, at);
}

void
api_fleet(struct exchange *x)
{
	char data[RECIPE_NAME_MAX] = "";

	if (http_query(&x->request, "data", data, sizeof(data)) && !data[0]) {
		exchange_problem(x, PROBLEM_BAD_MESSAGE, "\"data\" is the name of a data set");
		return;
	}
	if (!exchange_walk(x))
		return;
	struct fleet_cursor *cursor = calloc(1, sizeof(*cursor));
	if (cursor) {
		cursor->x = x;
		memcpy(cursor->data, data, sizeof(data));
	}
	exchange_list(x, NULL, "devices", fill_fleet, cursor);
}
