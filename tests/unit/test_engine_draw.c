/* stages: gcc openssl address thread */
/* Who may take part, and who is drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine_fixture.h"
#include "hash.h"

static const char drawing[] =
    JOB("drawing", "\"goal\":2,\"pick\":\"sample\",\"sample_s\":0.05", "");

static void
change_state(struct coordinator *c, uint8_t tag, enum device_state state)
{
	struct registry_view v;

	assert_int_equal(registry_get(c->s.registry, device_id(tag), &v), ERR_OK);
	v.row.state = state;
	assert_int_equal(registry_put(c->s.registry, &v.row), ERR_OK);
}

/* Revoked between the check of the head and the commit. */
static void
revoked_meanwhile(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, plain, id);
	assert_string_equal(ask(c, 1, &t), "");
	change_state(c, 1, DEVICE_REVOKED);
	assert_string_equal(deliver(c, &t, 1, 1, 100), "round-closed");
	assert_int_equal(job_number(c, id, "reports"), 0);
	change_state(c, 1, DEVICE_ACTIVE);
	assert_null(deliver(c, &t, 1, 1, 100));
}

static unsigned
jobs_of(struct engine *g, const uint8_t *device)
{
	struct engine_slice slice = {.device = device};
	unsigned n = 0;

	while (engine_jobs(g, &slice))
		n += (unsigned)slice.count;
	return n;
}

static void
selected_devices(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c,
	    JOB("two", "\"goal\":1,\"over_select\":9", ",\"select\":{\"devices\":[\"device-2\"]}"),
	    id);
	expect(c, 1, "ineligible");
	expect(c, 2, "");
	assert_true(engine_may_read(c->s.engine, device_id(2), round_row(c, id, 1).base, NULL));
	assert_false(engine_may_read(c->s.engine, device_id(1), round_row(c, id, 1).base, NULL));
	assert_false(engine_may_read(c->s.engine, device_id(2), device_id(2), NULL));
	struct job_view v;
	assert_false(engine_job(c->s.engine, id, device_id(1), &v));
	assert_true(engine_job(c->s.engine, id, device_id(2), &v));
	assert_int_equal(jobs_of(c->s.engine, device_id(1)), 0);
	assert_int_equal(jobs_of(c->s.engine, NULL), 1);
}

/* A device's place is the first 8 bytes of SHA-256(job || device) as a share of all. */
static void
a_share_of_the_fleet(void **state)
{
	struct coordinator *c = *state;
	unsigned in = 0;
	uint8_t id[16];

	submit(c, JOB("half", "\"goal\":9", ",\"select\":{\"percent\":[0,50]}"), id);
	for (uint8_t tag = 1; tag <= DEVICES; tag++) {
		uint8_t text[48], digest[32];
		memcpy(text, id, 16);
		memcpy(text + 16, device_id(tag), 32);
		hash_sha256(digest, text, sizeof(text));
		expect(c, tag, digest[0] < 0x80 ? "" : "ineligible");
		in += digest[0] < 0x80;
	}
	/* The case is no case if all are on one side. */
	assert_in_range(in, 1, DEVICES - 1);
}

static void
ticket(uint64_t seed, uint64_t round, uint8_t tag, uint8_t out[32])
{
	uint8_t text[48] = {(uint8_t)seed, 0, 0, 0, 0, 0, 0, 0, (uint8_t)round};

	memcpy(text + 16, device_id(tag), 32);
	hash_sha256(out, text, sizeof(text));
}

static void
drawn_by_hash(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16], mine[32], other[32];

	submit(c, drawing, id);
	for (uint8_t tag = DEVICES; tag >= 1; tag--)
		expect(c, tag, "not-selected");
	for (int i = 0; i < 5000 && job_number(c, id, "invited") == 0; i++) {
		rounds_tick(c->s.engine);
		usleep(2000);
	}
	assert_int_equal(job_number(c, id, "invited"), 2);
	for (uint8_t tag = 1; tag <= DEVICES; tag++) {
		unsigned smaller = 0;
		ticket(3, 1, tag, mine);
		for (uint8_t o = 1; o <= DEVICES; o++) {
			ticket(3, 1, o, other);
			smaller += memcmp(other, mine, 32) < 0;
		}
		expect(c, tag, smaller < 2 ? "" : "not-selected");
	}
}

/* Who asked and is here no more is not drawn. */
static void
drawn_without_the_gone(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16];

	submit(c, drawing, id);
	expect(c, 1, "not-selected");
	expect(c, 2, "not-selected");
	tasks_device_gone(c->s.engine, device_id(1), "revoked");
	for (int i = 0; i < 5000 && job_number(c, id, "invited") == 0; i++) {
		rounds_tick(c->s.engine);
		usleep(2000);
	}
	assert_int_equal(job_number(c, id, "invited"), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(revoked_meanwhile),
	    WITH(selected_devices),
	    WITH(a_share_of_the_fleet),
	    WITH(drawn_by_hash),
	    WITH(drawn_without_the_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
