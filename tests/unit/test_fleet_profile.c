/* stages: gcc clang openssl address */
/* Tables of simulated devices: what is read, what is refused and where; and devices that follow from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "population.h"

#define HEAD \
	"name,count,samples_per_s,up_bytes_per_s,down_bytes_per_s,latency_s,available,failure\n"

static void
reads(struct fleet_profiles *p, const char *text)
{
	struct why why = {""};

	if (fleet_profiles_parse(p, "f.csv", text, strlen(text), &why))
		fail_msg("%s", why.text);
}

static void
refuses(const char *text, const char *said)
{
	struct fleet_profiles p;
	struct why why = {""};

	assert_int_not_equal(fleet_profiles_parse(&p, "f.csv", text, strlen(text), &why), ERR_OK);
	if (!strstr(why.text, said))
		fail_msg("\"%s\" says \"%s\", not \"%s\"", text, why.text, said);
	fleet_profiles_deinit(&p);
}

static void
test_table(void **state)
{
	struct fleet_profiles p;

	(void)state;
	reads(&p,
	    "# a comment\n\n" HEAD "phone, 70 ,200,125000,1e6,0.08,0.5,0.02\r\nserver,2,1e5\n"
	    "slow,1,,,,2\n");
	assert_int_equal(p.count, 3);
	assert_int_equal(p.devices, 73);
	assert_string_equal(p.items[0].name, "phone");
	assert_int_equal(p.items[0].count, 70);
	assert_true(p.items[0].samples_per_s == 200 && p.items[0].up_bytes_per_s == 125000);
	assert_true(p.items[0].down_bytes_per_s == 1e6 && p.items[0].latency_s == 0.08);
	assert_true(p.items[0].available == 0.5 && p.items[0].failure == 0.02);
	/* What a line does not say takes no time and is always there. */
	assert_true(p.items[1].samples_per_s == 1e5 && p.items[1].up_bytes_per_s == 0);
	assert_true(p.items[1].available == 1 && p.items[1].failure == 0);
	assert_true(p.items[2].samples_per_s == 0 && p.items[2].latency_s == 2);
	fleet_profiles_deinit(&p);
}

static void
test_other_columns(void **state)
{
	struct fleet_profiles p;

	(void)state;
	reads(&p,
	    "attack,strength,id,name,examples\n"
	    "sign,,,liar,\nscale,3,,loud,\n,,"
	    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff,one,50");
	assert_int_equal(p.items[0].attack, FLEET_SIGN);
	assert_true(p.items[0].strength == 1);
	assert_true(p.items[1].strength == 3);
	assert_true(p.items[2].has_id && p.items[2].id[1] == 0x11 && p.items[2].examples == 50);
	assert_int_equal(p.items[2].attack, FLEET_HONEST);
	fleet_profiles_deinit(&p);
}

static void
test_refused(void **state)
{
	(void)state;
	refuses("", "no device");
	refuses(HEAD, "no device");
	refuses("name,speed\na,1\n", "f.csv:1: unknown column \"speed\"");
	refuses("name,name\na,1\n", "f.csv:1: the column name stands there twice");
	refuses("name,count\na,0\n", "f.csv:2: count: \"0\" is not");
	refuses("name,count\na,-1\n", "f.csv:2: count");
	refuses("name,count\na,1000001\n", "f.csv:2: count");
	refuses("name,count\na,600000\nb,600000\n", "f.csv:3: more than 1000000 devices");
	refuses("name,count\na,1,2\n", "f.csv:2: more cells");
	refuses("name,available\na,0\n", "available");
	refuses("name,available\na,1.5\n", "available");
	refuses("name,failure\na,1\n", "failure");
	refuses("name,samples_per_s\na,nan\n", "samples_per_s");
	refuses("name,latency_s\na,-1\n", "latency_s");
	refuses("name,attack\na,rude\n", "attack: \"rude\" is not none, sign");
	refuses("name,id\na,00\n", "f.csv:2: id");
	refuses("name,count,id\na,2,"
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
	    "count is 1");
	refuses("name\n\"a\"\"b\"\n", "without blanks or quotes");
	refuses("name\n\"a\nb\"\n", "f.csv:2: the quotes are wrong");
	refuses("\xff\xfen\0a\0", "f.csv: this is UTF-16");
}

/* As spreadsheets and other systems write them. */
static void
test_forms(void **state)
{
	static const char *const texts[] = {"name,count\na,2\nb,3\n",
	    "\xef\xbb\xbfname,count\r\na,2\r\nb,3", "name,count\ra,2\rb,3\r",
	    "\"name\",\"count\"\n\"a\",\"2\"\n\"b\" ,3\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct fleet_profiles p;
		reads(&p, texts[i]);
		assert_int_equal(p.count, 2);
		assert_string_equal(p.items[0].name, "a");
		assert_true(p.items[1].count == 3 && p.devices == 5);
		fleet_profiles_deinit(&p);
	}
}

static void
make(struct fleet *f, const char *text, double sigma)
{
	struct fleet_profiles p;
	struct why why = {""};

	reads(&p, text);
	assert_int_equal(fleet_init(f, &p, sigma, 7, &why), ERR_OK);
}

static void
test_devices(void **state)
{
	struct fleet f;
	bool seen[10] = {false};

	(void)state;
	make(&f, "name,count,samples_per_s\na,4,100\nb,6,200\n", 0);
	for (size_t i = 0; i < 10; i++) {
		const struct fleet_device *d = &f.devices[i];
		assert_true(i == 0 || memcmp(f.devices[i - 1].id, d->id, 32) < 0);
		assert_false(seen[d->number]);
		seen[d->number] = true;
		assert_int_equal(d->profile, d->number < 4 ? 0 : 1);
		assert_true(fleet_speed(&f, i) == (d->number < 4 ? 100 : 200));
		assert_int_equal(fleet_find(&f, d->id), i);
	}
	fleet_deinit(&f);
}

/* ln of a speed is normal: mean 0, deviation sigma; another device has another speed, and always the same. */
static void
test_speeds(void **state)
{
	enum { N = 20000 };
	struct fleet f;
	double sum = 0, squares = 0;

	(void)state;
	make(&f, "name,count,samples_per_s\na,20000,1\n", 0.5);
	for (size_t i = 0; i < N; i++) {
		double x = log(fleet_speed(&f, i));
		assert_true(fleet_speed(&f, i) == fleet_speed(&f, i));
		sum += x;
		squares += x * x;
	}
	assert_true(fabs(sum / N) < 5 * 0.5 / sqrt(N));
	assert_float_equal(squares / N, 0.25, 0.01);
	fleet_deinit(&f);
}

static void
test_presence(void **state)
{
	struct fleet f;
	size_t there = 0, fails = 0;
	double share;

	(void)state;
	make(&f, "name,count,available,failure\na,1000,0.3,0.2\n", 0);
	assert_true(f.comes_and_goes);
	for (size_t i = 0; i < 1000; i++) {
		for (uint64_t hour = 0; hour < 10; hour++) {
			uint64_t us = hour * FLEET_PERIOD_US;
			there += fleet_is_there(&f, i, us);
			assert_int_equal(fleet_is_there(&f, i, us),
			    fleet_is_there(&f, i, us + FLEET_PERIOD_US - 1));
			fails += fleet_fails(&f, i, hour, &share);
			assert_true(share >= 0 && share < 1);
		}
		uint64_t back = fleet_back(&f, i, 5);
		assert_true(fleet_is_there(&f, i, back));
		assert_true(back == 5 || back % FLEET_PERIOD_US == 0);
	}
	assert_true(there > 2700 && there < 3300);
	assert_true(fails > 1800 && fails < 2200);
	fleet_deinit(&f);
}

static void
test_times(void **state)
{
	const struct fleet_work w = {.bytes_down = 1000, .bytes_up = 500, .samples = 50};
	struct fleet f;

	(void)state;
	make(&f, HEAD "a,1,100,1000,2000,0.25\n", 0);
	const struct fleet_times t = fleet_times(&f, 0, &w);
	assert_int_equal(t.fetch_us, 750000);
	assert_int_equal(t.train_us, 500000);
	assert_int_equal(t.send_us, 750000);
	fleet_deinit(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_other_columns),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_forms),
	    cmocka_unit_test(test_devices),
	    cmocka_unit_test(test_speeds),
	    cmocka_unit_test(test_presence),
	    cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
