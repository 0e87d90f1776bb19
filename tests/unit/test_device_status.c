/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "api.h"
#include "coordinator_fixture.h"
#include "registry_inside.h"

static const char two[] = JOB("two", "\"goal\":2", "");

/* What the job's view says of its devices: the number `key`, of `part` where that is not NULL; 0 without it. */
static uint64_t
devices_of(struct coordinator *c, const uint8_t job[16], const char *part, const char *key)
{
	struct json *v = job_json(c, job);
	const struct json *at = json_get(v, "devices");
	uint64_t n = 0;

	assert_int_equal(json_kind(at), JSON_OBJECT);
	(void)json_u64(json_get(part ? json_get(at, part) : at, key), &n);
	json_free(v);
	return n;
}

static void
give_up(struct coordinator *c, uint8_t tag, const struct task *t, const char *word)
{
	assert_int_equal(
	    tasks_abort(c->s.engine, device_id(tag), t->task, abort_reason_parse(word), NULL),
	    ERR_OK);
}

static void
each_device_counts_once(void **state)
{
	struct coordinator *c = *state;
	struct task t;
	uint8_t id[16];

	submit(c, two, id);
	assert_int_equal(devices_of(c, id, NULL, "ready"), 0);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(devices_of(c, id, NULL, "ready"), 1);
	c->offer.data[0].examples = 9;
	assert_string_equal(ask(c, 2, &t), "no-data");
	assert_string_equal(ask(c, 3, &t), "no-data");
	assert_int_equal(devices_of(c, id, "waiting", "no-data"), 2);
	/* It has the data now. */
	c->offer.data[0].examples = 100;
	assert_string_equal(ask(c, 2, &t), "");
	assert_int_equal(devices_of(c, id, NULL, "ready"), 2);
	assert_int_equal(devices_of(c, id, "waiting", "no-data"), 1);
	/* Only its turn has not come. */
	assert_string_equal(ask(c, 4, &t), "not-selected");
	assert_int_equal(devices_of(c, id, NULL, "ready"), 3);
}

static void
who_gave_up_stays_so_until_it_reports(void **state)
{
	struct coordinator *c = *state;
	struct task first, second;
	uint8_t id[16];

	submit(c, two, id);
	assert_string_equal(ask(c, 1, &first), "");
	assert_string_equal(ask(c, 2, &second), "");
	give_up(c, 1, &first, "out-of-memory");
	give_up(c, 2, &second, "cosmic-ray");
	assert_int_equal(devices_of(c, id, NULL, "ready"), 0);
	assert_int_equal(devices_of(c, id, "gave_up", "out-of-memory"), 1);
	assert_int_equal(devices_of(c, id, "gave_up", "other"), 1);
	assert_string_equal(ask(c, 1, &first), "aborted");
	assert_int_equal(devices_of(c, id, "gave_up", "out-of-memory"), 1);
	/* Nor does one that rests for it. */
	memcpy(c->offer.resting[0].job, id, 16);
	c->offer.resting[0].seconds = 1;
	c->offer.resting_count = 1;
	assert_string_equal(ask(c, 1, &first), "resting");
	c->offer.resting_count = 0;
	assert_int_equal(devices_of(c, id, "gave_up", "out-of-memory"), 1);
	/* A delta that comes all the same counts. */
	assert_null(deliver(c, &second, 2, 1, 100));
	assert_int_equal(devices_of(c, id, "gave_up", "other"), 0);
	assert_int_equal(devices_of(c, id, NULL, "ready"), 1);
}

static void
who_may_work_no_longer_does_not_count(void **state)
{
	struct coordinator *c = *state;
	struct registry_view v;
	struct task t;
	uint8_t id[16];

	submit(c, two, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(ask(c, 2, &t), "");
	assert_int_equal(registry_get(c->s.registry, device_id(1), &v), ERR_OK);
	v.row.state = DEVICE_SUSPENDED;
	assert_int_equal(registry_put(c->s.registry, &v.row), ERR_OK);
	assert_int_equal(devices_of(c, id, NULL, "ready"), 1);
	/* A change of name or labels changes nothing. */
	assert_int_equal(registry_get(c->s.registry, device_id(2), &v), ERR_OK);
	assert_int_equal(registry_put(c->s.registry, &v.row), ERR_OK);
	assert_int_equal(devices_of(c, id, NULL, "ready"), 1);
	device_status_sweep(c->s.registry);
	assert_int_equal(devices_of(c, id, NULL, "ready"), 1);
	registry_device(c->s.registry, device_id(2))->told.until_ms = 1;
	device_status_sweep(c->s.registry);
	assert_int_equal(devices_of(c, id, NULL, "ready"), 0);
}

static void
who_is_silent_counts_no_more_and_its_offer_is_known_for_longer(void **state)
{
	const struct device_status_ask_for what = {"d", "builtin"};
	struct coordinator *c = *state;
	struct device_status_offer offer;
	struct task t;
	uint8_t id[16];

	submit(c, two, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(ask(c, 2, &t), "");
	struct registry_told *told = &registry_device(c->s.registry, device_id(2))->told;
	const uint64_t given = clock_ms() + (uint64_t)(t.deadline_s * 1000);
	assert_in_range(told->silent_ms, given, given + 70000);
	assert_true(told->until_ms > told->silent_ms);
	assert_true(
	    device_status_heard(c->s.registry, device_id(2), &what, &offer) && offer.lately);
	/* A minute after it should have said something: whatever it says gives it another one. */
	told->silent_ms = 1;
	registry_touch(c->s.registry, device_id(2), NULL, NULL);
	assert_in_range(told->silent_ms, clock_ms() + 50000, clock_ms() + 60000);
	told->silent_ms = 1;
	device_status_sweep(c->s.registry);
	assert_int_equal(devices_of(c, id, NULL, "ready"), 1);
	assert_true(
	    device_status_heard(c->s.registry, device_id(2), &what, &offer) && !offer.lately);
	/* Back, it counts again. */
	assert_string_equal(ask(c, 2, &t), "");
	assert_int_equal(devices_of(c, id, NULL, "ready"), 2);
}

static void
a_place_is_used_again(void **state)
{
	struct coordinator *c = *state;
	struct device_status_ask late;
	struct task t;
	uint8_t id[16], next[16];

	submit(c, two, id);
	assert_string_equal(ask(c, 1, &t), "");
	device_status_begin(c->s.registry, &late);
	device_status_say(&late, 0, WAIT_NO_DATA);
	assert_int_equal(engine_command(c->s.engine, id, JOB_STOPPED, NULL, &c->why), ERR_OK);
	struct json *v = job_json(c, id);
	assert_int_equal(json_kind(json_get(v, "devices")), JSON_NULL);
	json_free(v);
	submit(c, JOB("next", "\"goal\":2", ""), next);
	assert_int_equal(devices_of(c, next, NULL, "ready"), 0);
	/* What was found of the job that is over says nothing of the new one. */
	device_status_tell(c->s.registry, device_id(1), &late, 0);
	assert_int_equal(devices_of(c, next, "waiting", "no-data"), 0);
	assert_string_equal(ask(c, 1, &t), "");
	assert_int_equal(devices_of(c, next, NULL, "ready"), 1);
}

static void
as_many_jobs_as_there_may_be(void **state)
{
	struct coordinator *c = *state;
	struct registry *r = c->s.registry;
	struct device_status_ask ask;

	for (uint32_t i = 0; i < DEVICE_STATUS_PLACES; i++)
		assert_int_equal(device_status_open(r), i);
	assert_int_equal(device_status_open(r), DEVICE_STATUS_NO_PLACE);
	device_status_begin(r, &ask);
	for (uint32_t i = 0; i < DEVICE_STATUS_PLACES; i++)
		device_status_say(&ask, i, WAIT_PAUSED);
	device_status_say(&ask, DEVICE_STATUS_NO_PLACE, WAIT_PAUSED);
	device_status_tell(r, device_id(1), &ask, 0);
	assert_int_equal(device_status_get(r, 7).waiting[WAIT_PAUSED], 1);
	assert_int_equal(device_status_get(r, DEVICE_STATUS_PLACES - 1).waiting[WAIT_PAUSED], 1);
	device_status_close(r, 7);
	assert_int_equal(device_status_open(r), 7);
	assert_int_equal(device_status_get(r, 7).waiting[WAIT_PAUSED], 0);
	assert_int_equal(device_status_get(r, DEVICE_STATUS_NO_PLACE).ready, 0);
}

/* --- what a submitter is told */

static bool
is_warned(struct coordinator *c, const uint8_t job[16], const char *part)
{
	struct engine_reach reach;
	bool found = false;

	assert_true(engine_reach(c->s.engine, job, &reach));
	struct json *list = api_jobs_warnings(&reach, "job");
	for (size_t i = 0; i < json_count(list); i++)
		found |= strstr(json_string(json_at(list, i)), part) != NULL;
	if (!part[0])
		found = json_count(list) == 0;
	json_free(list);
	return found;
}

static void
without(struct offer *o, const char *feature)
{
	for (size_t i = 0; i < o->feature_count; i++)
		if (strcmp(o->features[i], feature) == 0)
			memcpy(o->features[i], o->features[--o->feature_count],
			    sizeof(o->features[i]));
}

static void
whom_a_job_reaches(void **state)
{
	struct coordinator *c = *state;
	uint8_t id[16], large[16], other[16], labelled[16], few[16];
	struct offer offer = c->offer;
	struct task t;

	submit(c, two, id);
	assert_true(is_warned(c, id, "none of the 9 devices that may work on it has asked"));
	assert_false(registry_note_offer(c->s.registry, device_id(1), &offer));
	assert_string_equal(ask(c, 1, &t), "");
	assert_true(is_warned(c, id,
	    "data: 1 of 9 devices have offered \"d\" with 10 examples or more, and a round wants "
	    "reports of 2"));
	assert_true(is_warned(c, id, "trainer: 1 of 9 devices have offered \"builtin\""));
	assert_false(registry_note_offer(c->s.registry, device_id(2), &offer));
	assert_string_equal(ask(c, 2, &t), "");
	assert_true(is_warned(c, id, ""));
	assert_false(
	    registry_note_offer(c->s.registry, device_id(2), &(struct offer){.agent = ""}));
	offer.data[0].examples = 9;
	assert_false(registry_note_offer(c->s.registry, device_id(1), &offer));
	assert_true(is_warned(c, id, "nobody has the data: none of the 2 devices"));
	submit(c, JOB("large", "\"goal\":10,\"quorum\":9", ""), large);
	assert_true(is_warned(c, large, "round.goal is 10, and 9 active devices"));
	assert_true(is_warned(c, large, "every round waits"));
	submit(c, JOB("other", "\"goal\":10", ""), other);
	assert_true(is_warned(c, other, "no round can close"));
	offer.data[0].examples = 100;
	assert_false(registry_note_offer(c->s.registry, device_id(1), &offer));
	submit(c, JOB("few", "\"goal\":1", ",\"aggregate\":{\"max_examples\":50}"), few);
	assert_true(is_warned(c, few, "1 of the 1 devices with the data have more examples of it"));
	assert_true(is_warned(c, few, "each draws that many"));
	without(&offer, RECIPE_FEATURE_MAX_EXAMPLES);
	assert_false(registry_note_offer(c->s.registry, device_id(1), &offer));
	assert_true(is_warned(c, few, "max_examples (50), and agents that draw no share of them"));
	assert_true(is_warned(c, other, "no round can close"));
	submit(c, JOB("labelled", "\"goal\":1", ",\"select\":{\"labels\":{\"site\":\"x\"}}"),
	    labelled);
	assert_true(is_warned(c, labelled, "round.goal is 1, and 0 active devices"));
}

/* Who has as few examples that the network cannot be trained by them gets no task, and is not counted as having the data either. */
static void
whom_a_network_can_be_trained_by(void **state)
{
	static const char text[] =
	    "{\"name\":\"norm\",\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\","
	    "\"out\":2},"
	    "{\"type\":\"batchnorm\",\"name\":\"bn\"}],\"loss\":\"cross_entropy\"},"
	    "\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},\"local\":{\"epochs\":1,"
	    "\"batch\":10,"
	    "\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},\"round\":{\"goal\":1}}";
	struct coordinator *c = *state;
	struct engine_reach reach;
	struct task t;
	uint8_t id[16];

	submit(c, text, id);
	strcpy(c->offer.layers[c->offer.layer_count++], "batchnorm");
	for (uint64_t examples = 1; examples <= 2; examples++) {
		c->offer.data[0].examples = examples;
		assert_false(registry_note_offer(c->s.registry, device_id(1), &c->offer));
		assert_string_equal(ask(c, 1, &t), examples < 2 ? "no-data" : "");
		assert_true(engine_reach(c->s.engine, id, &reach));
		assert_int_equal(reach.heard, 1);
		assert_int_equal(reach.data.min_examples, 2);
		assert_int_equal(reach.with_data, examples < 2 ? 0 : 1);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(each_device_counts_once),
	    WITH(who_gave_up_stays_so_until_it_reports),
	    WITH(who_may_work_no_longer_does_not_count),
	    WITH(who_is_silent_counts_no_more_and_its_offer_is_known_for_longer),
	    WITH(a_place_is_used_again),
	    WITH(as_many_jobs_as_there_may_be),
	    WITH(whom_a_job_reaches),
	    WITH(whom_a_network_can_be_trained_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
