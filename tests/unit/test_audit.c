/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit.h"
#include "audit_rows.h"
#include "buf.h"
#include "coordinator_fixture.h"
#include "job.h"
#include "json.h"
#include "record.h"
#include "sign.h"

/* --- reading the chain back */

#define ENTRIES_MAX 64

struct chain {
	struct coordinator *c;
	struct store_db *db;
	struct record entries[ENTRIES_MAX];
	struct json *bodies[ENTRIES_MAX];
	size_t count, details;
	uint8_t last[32];
};

static enum err
check_detail(void *ctx, const struct store_detail *d)
{
	struct chain *k = ctx;
	const struct json *list = json_get(k->bodies[k->count], "details");
	const char *want = json_string(json_at(list, (size_t)d->place));
	uint8_t digest[HASH_LEN];
	char hex[65];

	hash_hmac(digest, d->salt, sizeof(d->salt), d->data, d->len);
	hex_encode(hex, digest, sizeof(digest));
	assert_non_null(want);
	assert_string_equal(hex, want);
	k->details++;
	return ERR_OK;
}

static enum err
check_entry(void *ctx, const struct store_audit *a)
{
	struct chain *k = ctx;
	struct record *r = &k->entries[k->count];
	uint8_t digest[HASH_LEN];

	assert_true(k->count < ENTRIES_MAX);
	assert_int_equal(record_decode(r, a->link, sizeof(a->link), &k->c->why), ERR_OK);
	assert_int_equal(r->seq, k->count + 1);
	assert_int_equal(a->seq, r->seq);
	assert_memory_equal(r->previous, k->last, 32);
	hash_sha256(digest, a->body, a->body_len);
	assert_memory_equal(digest, r->body_hash, 32);
	assert_memory_equal(a->job, r->job, 16);
	hash_sha256(k->last, a->link, RECORD_SIGNED);
	assert_int_equal(
	    sign_verify(key_spki(k->c->s.sign_key), k->last, a->link + RECORD_SIGNED), ERR_OK);
	assert_int_equal(
	    json_parse(&k->bodies[k->count], a->body, a->body_len, &k->c->why), ERR_OK);
	enum err e = store_audit_detail_each(k->db, a->seq, check_detail, k);
	k->count++;
	return e;
}

static enum err
read_all(struct store_db *db, void *arg, struct why *why)
{
	struct chain *k = arg;

	(void)why;
	k->db = db;
	return store_audit_each(db, 1, ENTRIES_MAX, check_entry, k);
}

/* Reads the chain, each entry checked against the one before. */
static struct chain
read_chain(struct coordinator *c)
{
	struct chain k = {.c = c};

	assert_int_equal(store_read(c->s.store, read_all, &k, &c->why), ERR_OK);
	return k;
}

static void
forget(struct chain *k)
{
	for (size_t i = 0; i < k->count; i++)
		json_free(k->bodies[i]);
}

static const char *
text_of(const struct chain *k, size_t i, const char *key)
{
	const char *s = json_string(json_get(k->bodies[i], key));

	return s ? s : "";
}

/* --- appending */

struct note {
	const struct services *s;
	enum record_event event;
	const uint8_t *device;
	enum err then; /* what the work ends with */
};

static enum err
append_note(struct store_db *db, void *arg, struct why *why)
{
	const struct note *n = arg;
	struct json *detail = json_object();

	json_add_string(detail, "name", "gateway-7");
	enum err e = audit_append(db, n->s,
	    &(struct audit_event){.event = n->event, .device = n->device, .detail = detail}, why);
	return e ? e : n->then;
}

static enum err
note(struct coordinator *c, enum record_event event, const uint8_t *device, enum err then)
{
	struct note n = {&c->s, event, device, then};

	return store_write(c->s.store, append_note, &n, &c->why);
}

static void
names_stay_out_of_bodies(void **state)
{
	struct coordinator *c = *state;
	struct buf text;

	c->s.incarnation = 7;
	assert_int_equal(note(c, RECORD_DEVICE_JOINED, device_id(3), ERR_OK), ERR_OK);
	assert_int_equal(note(c, RECORD_DEVICE_REVOKED, device_id(3), ERR_OK), ERR_OK);
	struct chain k = read_chain(c);
	assert_int_equal(k.count, 2);
	assert_int_equal(k.details, 2);
	assert_int_equal(k.entries[1].incarnation, 7);
	assert_string_equal(text_of(&k, 0, "event"), "device.joined");
	buf_init(&text, 65536);
	for (size_t i = 0; i < k.count; i++)
		assert_int_equal(json_print(&text, k.bodies[i], false), ERR_OK);
	assert_null(strstr(buf_str(&text), "gateway-7"));
	assert_null(strstr(buf_str(&text), "0303030303"));
	/* The same detail twice: two salts, two hashes. */
	assert_string_not_equal(json_string(json_at(json_get(k.bodies[0], "details"), 0)),
	    json_string(json_at(json_get(k.bodies[1], "details"), 0)));
	buf_deinit(&text);
	forget(&k);
}

static void
undone_work_leaves_no_gap(void **state)
{
	struct coordinator *c = *state;

	assert_int_equal(note(c, RECORD_DEVICE_JOINED, NULL, ERR_OK), ERR_OK);
	assert_int_equal(note(c, RECORD_DEVICE_LEFT, NULL, ERR_STATE), ERR_STATE);
	assert_int_equal(note(c, RECORD_DEVICE_REVOKED, NULL, ERR_OK), ERR_OK);
	struct chain k = read_chain(c);
	assert_int_equal(k.count, 2);
	assert_string_equal(text_of(&k, 1, "event"), "device.revoked");
	forget(&k);
}

struct lost {
	const struct services *s;
	const uint8_t *job;
	struct store_audit found;
};

static enum err
append_lost(struct store_db *db, void *arg, struct why *why)
{
	const struct lost *l = arg;

	return audit_append(db, l->s,
	    &(struct audit_event){
		.event = RECORD_DELTA_LOST, .job = l->job, .round = 1, .device = device_id(3)},
	    why);
}

static enum err
find_round(struct store_db *db, void *arg, struct why *why)
{
	struct lost *l = arg;

	(void)why;
	return store_audit_round(db, l->job, 1, &l->found);
}

static void
only_a_record_is_a_rounds_record(void **state)
{
	struct coordinator *c = *state;
	struct lost l = {.s = &c->s, .job = device_id(8)};

	assert_int_equal(store_write(c->s.store, append_lost, &l, &c->why), ERR_OK);
	assert_int_equal(store_read(c->s.store, find_round, &l, &c->why), ERR_NOTFOUND);
	free(l.found.body);
}

static enum err
spoil_last(struct store_db *db, void *arg, struct why *why)
{
	static char body[] = "{}";
	struct store_audit a = {.seq = 2, .body = body, .body_len = 2};

	(void)arg;
	(void)why;
	memset(a.link, 'x', sizeof(a.link));
	return store_audit_insert(db, &a);
}

static void
no_entry_no_change(void **state)
{
	static const char text[] = JOB("audited", "\"goal\":1", "");
	struct coordinator *c = *state;
	uint8_t id[16];
	bool created = false;

	assert_int_equal(note(c, RECORD_DEVICE_JOINED, NULL, ERR_OK), ERR_OK);
	assert_int_equal(store_write(c->s.store, spoil_last, NULL, &c->why), ERR_OK);
	enum err e = engine_submit(c->s.engine,
	    &(struct engine_document){.text = text, .len = strlen(text)}, id, &created, &c->why);
	assert_int_equal(e, ERR_CORRUPT);
	assert_false(created);
	assert_null(job_json(c, id));
}

/* --- what the coordinator does */

static void
a_round_is_recorded(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, JOB("audited", "\"goal\":2", ",\"stop\":{\"rounds\":1}"), id);
	assert_string_equal(ask(c, 2, &t), "");
	assert_null(deliver(c, &t, 2, 1.0f, 100));
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 3.0f, 300));
	await_state(c, id, "done");
	struct store_round row = round_row(c, id, 1);
	struct chain k = read_chain(c);
	char hex[65];
	assert_int_equal(k.count, 3);
	assert_string_equal(text_of(&k, 0, "event"), "job.submitted");
	assert_string_equal(text_of(&k, 1, "event"), "round.committed");
	assert_string_equal(text_of(&k, 2, "event"), "job.state");
	assert_string_equal(text_of(&k, 2, "state"), "done");
	assert_int_equal(k.entries[1].round, 1);
	assert_memory_equal(k.entries[1].job, id, 16);
	hex_encode(hex, row.model, 32);
	assert_string_equal(text_of(&k, 1, "model"), hex);
	hex_encode(hex, row.base, 32);
	assert_string_equal(text_of(&k, 1, "base"), hex);
	assert_int_equal(json_count(json_get(k.bodies[1], "details")), 2);
	assert_int_equal(k.details, 3); /* the document, two manifests */
	forget(&k);
}

struct manifests {
	uint64_t seq;
	uint8_t devices[4][32];
	size_t count;
};

static enum err
take_manifest(void *ctx, const struct store_detail *d)
{
	struct manifests *m = ctx;
	struct manifest got;

	assert_int_equal(d->place, m->count);
	assert_int_equal(manifest_decode(&got, d->data, d->len, NULL), ERR_OK);
	assert_memory_equal(got.device, d->device, 32);
	memcpy(m->devices[m->count++], d->device, 32);
	return ERR_OK;
}

static enum err
read_manifests(struct store_db *db, void *arg, struct why *why)
{
	struct manifests *m = arg;

	(void)why;
	return store_audit_detail_each(db, m->seq, take_manifest, m);
}

static void
manifests_in_device_order(void **state)
{
	static const uint8_t tags[] = {3, 1, 2};
	struct coordinator *c = *state;
	struct manifests m = {.seq = 2};
	struct task t;
	uint8_t id[16];

	submit(c, JOB("audited", "\"goal\":3", ",\"stop\":{\"rounds\":1}"), id);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(ask(c, tags[i], &t), "");
		assert_null(deliver(c, &t, tags[i], 1.0f, 100));
	}
	await_state(c, id, "done");
	assert_int_equal(store_read(c->s.store, read_manifests, &m, &c->why), ERR_OK);
	assert_int_equal(m.count, 3);
	for (uint8_t tag = 1; tag <= 3; tag++)
		assert_memory_equal(m.devices[tag - 1], device_id(tag), 32);
}

static void
commands_are_recorded(void **state)
{
	static const enum job_state states[] = {JOB_PAUSED, JOB_RUNNING, JOB_STOPPED};
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, JOB("audited", "\"goal\":2", ""), id);
	for (int i = 0; i < 3; i++)
		assert_int_equal(engine_command(c->s.engine, id, states[i], NULL, &c->why), ERR_OK);
	struct chain k = read_chain(c);
	assert_int_equal(k.count, 4);
	for (int i = 0; i < 3; i++)
		assert_string_equal(
		    text_of(&k, (size_t)i + 1, "state"), states_job_name(states[i]));
	forget(&k);
}

struct ending {
	struct coordinator *c;
	uint8_t id[16];
};

static enum err
end_again(struct store_db *db, void *arg, struct why *why)
{
	struct ending *n = arg;
	uint8_t none[16] = {1};
	struct engine_change change = {n->id, JOB_DONE, "all rounds done", NULL, 0};
	enum job_state was = JOB_UNKNOWN;
	struct store_job row;

	assert_int_equal(jobs_change_state(db, &n->c->s, &change, &was, why), ERR_OK);
	assert_int_equal(was, JOB_STOPPED);
	assert_int_equal(store_job_get(db, n->id, &row), ERR_OK);
	assert_int_equal(row.state, JOB_STOPPED);
	free(row.document);
	change.job = none;
	return jobs_change_state(db, &n->c->s, &change, &was, why);
}

/* Whoever comes second, a fold or a person: neither row nor log changes. */
static void
a_job_ends_once(void **state)
{
	struct coordinator *c = *state;
	struct ending n = {.c = c};

	submit(c, JOB("audited", "\"goal\":2", ""), n.id);
	assert_int_equal(engine_command(c->s.engine, n.id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	assert_int_equal(store_write(c->s.store, end_again, &n, &c->why), ERR_NOTFOUND);
	assert_int_equal(engine_command(c->s.engine, n.id, JOB_STOPPED, NULL, &c->why), ERR_STATE);
	assert_string_equal(c->why.text, "the job is stopped");
	struct chain k = read_chain(c);
	assert_int_equal(k.count, 2);
	forget(&k);
}

/* --- refusals */

static uint64_t
refused(const struct chain *k, size_t i, const char *word)
{
	uint64_t n = 0;

	return json_u64(json_get(json_get(k->bodies[i], "refusals"), word), &n) ? n : 0;
}

static void
refusals_are_counted(void **state)
{
	struct coordinator *c = *state;
	struct audit *a = NULL;

	c->config.audit_refusals_s = 1000;
	assert_int_equal(audit_new(&a, &c->s), ERR_OK);
	for (int i = 0; i < 5; i++)
		audit_refused(a, PROBLEM_STALE_ROUND);
	audit_refused(a, PROBLEM_BAD_TOKEN);
	audit_tick(a); /* not yet time */
	audit_free(a);
	struct chain k = read_chain(c);
	assert_int_equal(k.count, 1);
	assert_string_equal(text_of(&k, 0, "event"), "refused");
	assert_int_equal(refused(&k, 0, "stale-round"), 5);
	assert_int_equal(refused(&k, 0, "bad-token"), 1);
	forget(&k);
}

static enum err
late_work(struct store_db *db, void *arg, struct why *why)
{
	(void)db, (void)arg;
	usleep(200000);
	return err_set(why, ERR_STATE, "the round has closed");
}

static void
late_done(void *arg, enum err e, const struct why *why)
{
	(void)e, (void)why;
	audit_refused(arg, PROBLEM_ROUND_CLOSED);
}

/* A delta that still waits for the store when the coordinator stops may be refused by it. */
static void
refusals_at_the_end(void **state)
{
	struct coordinator *c = *state;
	struct audit *a = NULL;

	assert_int_equal(audit_new(&a, &c->s), ERR_OK);
	assert_int_equal(store_submit(c->s.store, late_work, late_done, a), ERR_OK);
	audit_free(a);
	struct chain k = read_chain(c);
	assert_int_equal(k.count, 1);
	assert_int_equal(refused(&k, 0, "round-closed"), 1);
	forget(&k);
}

static size_t
chain_length(struct coordinator *c)
{
	struct chain k = read_chain(c);

	forget(&k);
	return k.count;
}

static void
refusals_by_the_clock(void **state)
{
	struct coordinator *c = *state;
	struct audit *a = NULL;

	c->config.audit_refusals_s = 0;
	assert_int_equal(audit_new(&a, &c->s), ERR_OK);
	audit_tick(a); /* nothing to say */
	assert_int_equal(chain_length(c), 0);
	audit_refused(a, PROBLEM_STALE_ROUND);
	audit_tick(a);
	for (uint64_t until = clock_ms() + 120000; chain_length(c) == 0; usleep(2000))
		assert_true(clock_ms() < until);
	audit_free(a);
	assert_int_equal(chain_length(c), 1);
}

/* --- erasing */

struct erasure {
	struct store_erased counts;
	uint64_t tasks;
};

static enum err
count_task(void *ctx, const uint8_t task[16])
{
	(void)task;
	((struct erasure *)ctx)->tasks++;
	return ERR_OK;
}

static enum err
erase_device_3(struct store_db *db, void *arg, struct why *why)
{
	struct erasure *n = arg;

	(void)why;
	return store_audit_erase(db, device_id(3), count_task, n, &n->counts);
}

static void
erased_details_leave_the_chain(void **state)
{
	struct coordinator *c = *state;
	struct erasure n = {.tasks = 0};

	assert_int_equal(note(c, RECORD_DEVICE_JOINED, device_id(3), ERR_OK), ERR_OK);
	assert_int_equal(note(c, RECORD_DEVICE_JOINED, device_id(4), ERR_OK), ERR_OK);
	assert_int_equal(note(c, RECORD_DEVICE_REVOKED, device_id(3), ERR_OK), ERR_OK);
	assert_int_equal(store_write(c->s.store, erase_device_3, &n, &c->why), ERR_OK);
	assert_int_equal(n.counts.details, 2);
	assert_int_equal(n.counts.reports, 0);
	struct chain k = read_chain(c);
	assert_int_equal(k.count, 3);
	assert_int_equal(k.details, 1);
	forget(&k);
}

/* A delta that was acknowledged is folded: until then its device cannot be erased. */
static void
not_while_a_round_is_open(void **state)
{
	struct coordinator *c = *state;
	struct erasure n = {.tasks = 0};
	struct task t;
	uint8_t id[16];

	submit(c, JOB("audited", "\"goal\":2", ",\"stop\":{\"rounds\":1}"), id);
	assert_string_equal(ask(c, 3, &t), "");
	assert_null(deliver(c, &t, 3, 1.0f, 100));
	assert_int_equal(store_write(c->s.store, erase_device_3, &n, &c->why), ERR_STATE);
	assert_string_equal(ask(c, 4, &t), "");
	assert_null(deliver(c, &t, 4, 1.0f, 100));
	await_state(c, id, "done");
	assert_int_equal(store_write(c->s.store, erase_device_3, &n, &c->why), ERR_OK);
	assert_int_equal(n.tasks, 1);
	assert_int_equal(n.counts.reports, 1);
	assert_int_equal(n.counts.details, 1);
	struct chain k = read_chain(c);
	assert_int_equal(k.details, 2); /* the document, the other manifest */
	forget(&k);
}

#define WITH_COORDINATOR(test) \
	cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_COORDINATOR(names_stay_out_of_bodies),
	    WITH_COORDINATOR(undone_work_leaves_no_gap),
	    WITH_COORDINATOR(only_a_record_is_a_rounds_record),
	    WITH_COORDINATOR(no_entry_no_change),
	    WITH_COORDINATOR(a_round_is_recorded),
	    WITH_COORDINATOR(manifests_in_device_order),
	    WITH_COORDINATOR(commands_are_recorded),
	    WITH_COORDINATOR(a_job_ends_once),
	    WITH_COORDINATOR(refusals_are_counted),
	    WITH_COORDINATOR(refusals_at_the_end),
	    WITH_COORDINATOR(refusals_by_the_clock),
	    WITH_COORDINATOR(erased_details_leave_the_chain),
	    WITH_COORDINATOR(not_while_a_round_is_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
