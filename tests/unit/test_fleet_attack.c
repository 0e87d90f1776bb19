/* stages: gcc clang openssl address */
/* What attackers of a simulated fleet send, on deltas of two elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../lab/fleet/attack.c"

#define DEVICES 5

struct stage {
	struct fleet_attack_delta deltas[DEVICES];
	float values[DEVICES][2];
};

/* Honest: (1, -2), (2, -2), (3, -2), mean (2, -2), deviation (sqrt(2/3), 0). The first two are hostile. */
static void
make(struct stage *s, enum fleet_attack attack, double strength)
{
	for (unsigned i = 0; i < DEVICES; i++) {
		s->values[i][0] = i < 2 ? 5 : (float)i - 1;
		s->values[i][1] = -2;
		s->deltas[i] = (struct fleet_attack_delta){.values = s->values[i],
		    .examples = 100,
		    .attack = i < 2 ? attack : FLEET_HONEST,
		    .strength = strength,
		    .number = i};
	}
	assert_int_equal(fleet_attack_round(s->deltas, DEVICES, 2, 1), ERR_OK);
	for (unsigned i = 2; i < DEVICES; i++) {
		assert_true(s->values[i][0] == (float)i - 1);
		assert_true(s->values[i][1] == -2);
		assert_int_equal(s->deltas[i].examples, 100);
	}
}

static void
expect(const struct stage *s, double x, double y)
{
	for (unsigned i = 0; i < 2; i++) {
		assert_float_equal(s->values[i][0], x, 1e-6);
		assert_float_equal(s->values[i][1], y, 1e-6);
	}
}

static void
test_own_delta(void **state)
{
	struct stage s;

	(void)state;
	make(&s, FLEET_HONEST, 0);
	expect(&s, 5, -2);
	make(&s, FLEET_SIGN, 1);
	expect(&s, -5, 2);
	make(&s, FLEET_SCALE, 10);
	expect(&s, 50, -20);
	make(&s, FLEET_BACKDOOR, 5);
	expect(&s, 25, -10);
}

static void
test_from_the_honest(void **state)
{
	struct stage s;

	(void)state;
	make(&s, FLEET_IPM, 0.5);
	expect(&s, -1, 1);
	make(&s, FLEET_MIMIC, 0);
	expect(&s, 1, -2);
	make(&s, FLEET_ALIE, 1.5);
	expect(&s, 2 - 1.5 * sqrt(2.0 / 3), -2);
	/* n = 5, f = 2: s = 1 is needed of 3, z = the point of 2/3. */
	make(&s, FLEET_ALIE, 0);
	expect(&s, 2 - 0.430727 * sqrt(2.0 / 3), -2);
}

static void
test_noise(void **state)
{
	enum { N = 20000 };
	static float x[N], y[N];
	double sum = 0, squares = 0, both = 0;

	(void)state;
	fill_noise(x, N, 0.5, 1, 1);
	fill_noise(y, N, 0.5, 1, 2);
	for (size_t i = 0; i < N; i++) {
		sum += (double)x[i];
		squares += (double)x[i] * (double)x[i];
		both += (double)x[i] * (double)y[i];
	}
	assert_true(fabs(sum / N) < 5 * 0.5 / sqrt(N));
	assert_float_equal(squares / N, 0.25, 0.02);
	assert_true(fabs(both / N) < 5 * 0.25 / sqrt(N));
}

/* (computed) in the project's page of algorithms, section 5. */
static void
test_z(void **state)
{
	(void)state;
	assert_float_equal(fleet_attack_z(50, 12), 0.336, 0.0005);
	assert_float_equal(fleet_attack_z(25, 5), 0.253, 0.0005);
	assert_float_equal(fleet_attack_z(25, 11), 1.068, 0.0005);
	assert_float_equal(fleet_attack_z(100, 20), 0.286, 0.0005);
}

static void
test_lies(void **state)
{
	struct stage s;
	uint8_t payload[8] = {0};
	uint64_t len = sizeof(payload);
	float value;

	(void)state;
	make(&s, FLEET_LIES, 0);
	fleet_attack_payload(FLEET_LIES, 0, payload, &len);
	memcpy(&value, payload, sizeof(value));
	assert_true(isnan(value));
	fleet_attack_payload(FLEET_LIES, 1, payload, &len);
	memcpy(&value, payload, sizeof(value));
	assert_true(isinf(value));
	fleet_attack_payload(FLEET_LIES, 2, payload, &len);
	assert_int_equal(len, sizeof(payload) - 4);
	s.deltas[0].number = 3;
	change(&s.deltas[0], 2, 1);
	assert_true(s.deltas[0].examples == (uint64_t)1 << 31);
	/* An honest device's payload stays. */
	len = sizeof(payload);
	memset(payload, 7, sizeof(payload));
	fleet_attack_payload(FLEET_HONEST, 0, payload, &len);
	assert_int_equal(payload[0], 7);
}

/* Who was changed already stays so when others come later; two kinds of attackers side by side. */
static void
test_later(void **state)
{
	struct stage s;

	(void)state;
	make(&s, FLEET_IPM, 0.5);
	s.deltas[1].done = false;
	s.deltas[1].attack = FLEET_SIGN;
	s.deltas[1].strength = 2;
	assert_int_equal(fleet_attack_round(s.deltas, DEVICES, 2, 1), ERR_OK);
	assert_float_equal(s.values[0][0], -1, 1e-6);
	assert_float_equal(s.values[1][0], 2, 1e-6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_own_delta),
	    cmocka_unit_test(test_from_the_honest),
	    cmocka_unit_test(test_noise),
	    cmocka_unit_test(test_z),
	    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
