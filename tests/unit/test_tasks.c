/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api.h"
#include "buf.h"
#include "coordinator_fixture.h"
#include "exchange.h"

/* The handler of POST /v1/tasks without its connection. */
static struct exchange
request(struct coordinator *c, uint64_t wait_s)
{
	struct exchange x = {.services = &c->s, .who = {.roles = ROLE_DEVICE, .has_cert = true}};

	memcpy(x.who.device, device_id(1), 32);
	c->offer.wait_s = wait_s;
	buf_init(&x.body, 65536);
	assert_int_equal(messages_offer_encode(&x.body, &c->offer), ERR_OK);
	return x;
}

static void
end(struct exchange *x)
{
	if (x->state)
		api_task_drop(x);
	exchange_reset(x);
}

/* Woken, a parked request goes on with the offer it came with: the text is gone. */
static void
an_offer_is_parsed_once(void **state)
{
	struct coordinator *c = *state;
	struct exchange x = request(c, 50);
	uint8_t job[16];

	api_task_ask(&x);
	assert_true(x.parked);
	assert_int_equal(x.response.status, 0);
	assert_non_null(x.state);
	assert_null(x.body.data);
	submit(c, JOB("j", "\"goal\":1", ""), job);
	x.parked = false;
	api_task_ask(&x);
	assert_false(x.parked);
	assert_int_equal(x.response.status, 200);
	assert_non_null(strstr(x.response.body.data, "\"kind\":\"train\""));
	end(&x);
}

static void
time_over_is_an_answer(void **state)
{
	static const uint64_t waits[] = {0, 50};
	struct coordinator *c = *state;

	for (size_t i = 0; i < 2; i++) {
		struct exchange x = request(c, waits[i]);
		/* As a coordinator that stops says it at the first call. */
		x.expired = waits[i] > 0;
		api_task_ask(&x);
		assert_false(x.parked);
		assert_int_equal(x.response.status, 200);
		assert_non_null(strstr(x.response.body.data, "\"wait\":"));
		end(&x);
	}
}

static void
a_bad_offer_is_refused(void **state)
{
	struct coordinator *c = *state;
	struct exchange x = request(c, 50);

	buf_reset(&x.body);
	assert_int_equal(buf_printf(&x.body, "{\"protocol\":\"1\"}"), ERR_OK);
	api_task_ask(&x);
	assert_false(x.parked);
	assert_int_equal(x.response.status, 400);
	assert_null(x.state);
	end(&x);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(an_offer_is_parsed_once),
	    TEST(time_over_is_an_answer),
	    TEST(a_bad_offer_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
