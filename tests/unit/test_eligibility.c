/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "eligibility.h"
#include "file.h"
#include "load.h"
#include "tree.h"

static char root[] = "/tmp/rivulet.eligible.XXXXXX";

static void
put(const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	*strrchr(full, '/') = '\0';
	assert_int_equal(file_mkdirs(full, 0755, NULL), ERR_OK);
	full[strlen(full)] = '/';
	FILE *f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int
new_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/rivulet.eligible.XXXXXX");
	return mkdtemp(root) && setenv(ELIGIBILITY_ROOT, root, 1) == 0 ? 0 : -1;
}

static int
drop_root(void **state)
{
	(void)state;
	return file_remove_dir(root, NULL) == ERR_OK ? 0 : -1;
}

/* --- load */

static void
own_time_is_no_load(void **state)
{
	const struct load_sample before = {.busy = 100, .total = 1000, .own = 7};

	(void)state;
	/* Four processors for ten seconds, all of them ours; half of them ours; ours and another's one. */
	assert_true(load_others(&before, &(struct load_sample){140, 1040, 47}) < 1e-9);
	assert_true(load_others(&before, &(struct load_sample){120, 1040, 27}) < 1e-9);
	assert_true(fabs(load_others(&before, &(struct load_sample){140, 1040, 37}) - 25) < 1e-9);
	/* Ticks are rounded: a little more than all. */
	assert_true(load_others(&before, &(struct load_sample){140, 1040, 47.2}) < 1e-9);
	/* What ended took its time along. */
	assert_true(fabs(load_others(&before, &(struct load_sample){110, 1040, 3}) - 25) < 1e-9);
	assert_true(isnan(load_others(&before, &(struct load_sample){100.1, 1000.2, 7})));
}

static void
steps_of_load(void **state)
{
	static const struct {
		double percent;
		bool busy;
	} all[] = {
	    {10, false},
	    {60, false}, /* one look is none */
	    {10, false},
	    {60, false},
	    {60, true},
	    {45, true}, /* below 50, but not below 37.5 */
	    {45, true},
	    {30, true},
	    {60, true},
	    {30, true},
	    {(double)NAN, true},
	    {30, false},
	    {45, false},
	    {50, false},
	    {50, false},
	};
	struct load_state s = {.busy = false}, first = {.busy = false};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (load_step(&s, all[i].percent, 50) != all[i].busy)
			fail_msg("look %zu", i);
	assert_true(load_step(&first, 60, 50)); /* the first decides alone */
}

static void
burn(double seconds)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while ((double)t.tv_sec + (double)t.tv_nsec / 1e9 < seconds);
}

/* A child at work, and one that is waited for, count as our own. */
static void
children_are_ours(void **state)
{
	double before = tree_seconds(getpid());
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		burn(0.3);
		(void)!write(ends[1], "x", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_true(tree_seconds(getpid()) - before > 0.2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(tree_seconds(getpid()) - before > 0.2);
	close(ends[0]);
	close(ends[1]);
}

static void
busy_of_proc_stat(void **state)
{
	struct load_sample a;
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);

	(void)state;
	assert_false(load_read(&a, getpid(), root));
	put("/proc/stat", "cpu  100 20 30 4000 50 6 7 800 9 0\ncpu0 1 2 3\n");
	assert_true(load_read(&a, getpid(), root));
	assert_true(fabs(a.busy - 163 * tick) < 1e-9);
	assert_true(fabs(a.total - 4213 * tick) < 1e-9); /* a hypervisor's share is nobody's */
	put("/proc/stat", "cpu  1 2 3\n");
	assert_false(load_read(&a, getpid(), root));
}

/* --- heat */

static void
hottest_sensor(void **state)
{
	struct heat h;

	(void)state;
	heat_read(&h, root);
	assert_true(isnan(h.celsius));
	put("/sys/class/thermal/thermal_zone0/type", "PMIC-Die\n");
	put("/sys/class/thermal/thermal_zone0/temp", "100000\n");
	put("/sys/class/thermal/thermal_zone1/type", "iwlwifi_1\n");
	put("/sys/class/thermal/thermal_zone1/temp", "71000\n");
	put("/sys/class/thermal/thermal_zone2/type", "broken\n");
	put("/sys/class/thermal/thermal_zone2/temp", "-274000\n");
	put("/sys/class/thermal/cooling_device0/type", "Fan\n");
	put("/sys/class/hwmon/hwmon0/name", "nvme\n");
	put("/sys/class/hwmon/hwmon0/temp1_input", "80000\n");
	heat_read(&h, root);
	assert_true(isnan(h.celsius));
	put("/sys/class/thermal/thermal_zone3/type", "cpu-thermal\n");
	put("/sys/class/thermal/thermal_zone3/temp", "48312\n");
	heat_read(&h, root);
	assert_true(fabs(h.celsius - 48.312) < 1e-9);
	assert_string_equal(h.name, "cpu-thermal");
	put("/sys/class/hwmon/hwmon1/name", "k10temp\n");
	put("/sys/class/hwmon/hwmon1/temp1_input", "62000\n");
	put("/sys/class/hwmon/hwmon1/temp3_input", "65500\n");
	heat_read(&h, root);
	assert_true(fabs(h.celsius - 65.5) < 1e-9);
	assert_string_equal(h.name, "k10temp");
}

static void
heat_rests(void **state)
{
	struct heat_state s = {.hot = false};

	(void)state;
	assert_false(heat_step(&s, 79.9, 80, 0));
	assert_true(heat_step(&s, 80, 80, 10));
	assert_true(heat_step(&s, 60, 80, 20));
	assert_true(heat_step(&s, 81, 80, 100));
	assert_true(heat_step(&s, 60, 80, 399));
	assert_true(heat_step(&s, 75.1, 80, 500));
	assert_false(heat_step(&s, 75, 80, 510));
	assert_false(heat_step(&s, (double)NAN, 80, 520));
	assert_true(heat_step(&s, 90, 80, 530));
	assert_false(heat_step(&s, (double)NAN, 80, 831)); /* a sensor that went */
}

/* --- link */

#define ROUTES "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"

static void
modems_are_metered(void **state)
{
	struct uplink_bus bus = {.library = NULL};
	struct link l;

	(void)state;
	uplink_read(&l, &bus, root);
	assert_false(l.metered);
	assert_string_equal(l.interface, "");
	put("/sys/class/net/wwan0/uevent", "DEVTYPE=wwan\nINTERFACE=wwan0\nIFINDEX=5\n");
	put("/sys/class/net/wlan0/uevent", "DEVTYPE=wlan\nINTERFACE=wlan0\n");
	put("/proc/net/route",
	    ROUTES "wwan0\t00000000\t01000A0A\t0003\t0\t0\t700\t00000000\t0\t0\t0\n"
		   "wlan0\t0000A8C0\t00000000\t0001\t0\t0\t600\t00FFFFFF\t0\t0\t0\n");
	uplink_read(&l, &bus, root);
	assert_true(l.metered);
	assert_string_equal(l.interface, "wwan0");
	put("/proc/net/route",
	    ROUTES "wwan0\t00000000\t01000A0A\t0003\t0\t0\t700\t00000000\t0\t0\t0\n"
		   "wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n");
	uplink_read(&l, &bus, root);
	assert_false(l.metered);
	assert_string_equal(l.interface, "wlan0");
	/* Without one of the fourth version. */
	put("/proc/net/route", ROUTES);
	put("/proc/net/ipv6_route",
	    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
	    "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n"
	    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
	    "fe800000000000000000000000000001 00000400 00000003 00000000 00450003    wwan0\n");
	uplink_read(&l, &bus, root);
	assert_true(l.metered);
	assert_string_equal(l.interface, "wwan0");
	uplink_bus_deinit(&bus);
}

/* --- quota */

static void
days_of_bytes(void **state)
{
	static const uint64_t most[QUOTA_WAYS] = {1000, 0};
	struct why why = {""};
	struct quota q;

	(void)state;
	quota_init(&q, root, most, 20261125);
	assert_int_equal(quota_charge(&q, QUOTA_UP, 600, &why), ERR_OK);
	assert_int_equal(quota_charge(&q, QUOTA_DOWN, 1u << 30, &why), ERR_OK); /* no limit */
	/* A restart changes nothing. */
	quota_init(&q, root, most, 20261125);
	assert_int_equal(q.used[QUOTA_UP], 600);
	assert_false(quota_over(&q, QUOTA_UP));
	assert_int_equal(quota_charge(&q, QUOTA_UP, 401, &why), ERR_LIMIT);
	assert_non_null(strstr(why.text, "upload_per_day: 401 bytes do not fit into 400"));
	assert_true(quota_over(&q, QUOTA_UP));
	assert_false(quota_over(&q, QUOTA_DOWN));
	quota_refund(&q, QUOTA_UP, 100);
	assert_int_equal(quota_charge(&q, QUOTA_UP, 500, &why), ERR_OK);
	quota_init(&q, root, most, 20261125);
	assert_true(quota_over(&q, QUOTA_UP));
	/* The clock was set back: the day stays. Midnight: another one. */
	quota_turn(&q, 19700101);
	assert_true(quota_over(&q, QUOTA_UP));
	quota_turn(&q, 20261126);
	assert_false(quota_over(&q, QUOTA_UP));
	assert_int_equal(quota_charge(&q, QUOTA_UP, 1000, &why), ERR_OK);
	quota_init(&q, root, most, 20261126);
	assert_true(quota_over(&q, QUOTA_UP));
	quota_init(&q, root, most, 20261231);
	assert_int_equal(q.used[QUOTA_UP], 0);
	/* A damaged file is no free day. */
	put("/" QUOTA_FILE, "20261231 1 2 3\n");
	quota_init(&q, root, most, 20261231);
	assert_true(quota_over(&q, QUOTA_UP));
	quota_turn(&q, 20270101);
	assert_false(quota_over(&q, QUOTA_UP));
}

/* A clock that jumps gives no day twice, and takes none that is to come. */
static void
days_that_jump(void **state)
{
	static const uint64_t most[QUOTA_WAYS] = {1000, 0};
	static const uint32_t wrong[] = {20141125, 20261124, 20261127, 20271230};
	struct why why = {""};
	struct quota q;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		for (int restart = 0; restart < 2; restart++) {
			put("/" QUOTA_FILE, "20261125 1000 0\n");
			quota_init(&q, root, most, 20261125);
			for (int k = 0; k < 3; k++) {
				quota_turn(&q, wrong[i]);
				bool ahead = wrong[i] > 20261125;
				assert_true(quota_over(&q, QUOTA_UP) || (ahead && k == 0));
				if (!quota_over(&q, QUOTA_UP))
					assert_int_equal(
					    quota_charge(&q, QUOTA_UP, 1000, &why), ERR_OK);
				if (restart && ahead)
					quota_init(&q, root, most, wrong[i]);
				quota_turn(&q, 20261125);
				assert_true(quota_over(&q, QUOTA_UP));
			}
			quota_turn(&q, 20261126);
			assert_false(quota_over(&q, QUOTA_UP));
		}
	}
	/* The last day of a month, of a year, of February. */
	static const uint32_t pairs[][2] = {
	    {20261130, 20261201}, {20261231, 20270101}, {20280228, 20280229}, {20280229, 20280301}};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		put("/" QUOTA_FILE, "20990101 1000 0\n");
		quota_init(&q, root, most, pairs[i][0]);
		assert_true(quota_over(&q, QUOTA_UP));
		if (i % 2)
			quota_init(&q, root, most, pairs[i][1]);
		else
			quota_turn(&q, pairs[i][1]);
		assert_false(quota_over(&q, QUOTA_UP));
	}
}

static void
no_count_no_bytes(void **state)
{
	static const uint64_t most[QUOTA_WAYS] = {1000, 1000};
	struct why why = {""};
	struct quota q;

	(void)state;
	quota_init(&q, "/nonexistent/home", most, 20261125);
	assert_int_not_equal(quota_charge(&q, QUOTA_UP, 1, &why), ERR_OK);
	assert_false(quota_over(&q, QUOTA_UP));
}

/* --- verdict */

static struct quota no_quota;

static struct readings
fine(void)
{
	return (struct readings){.local = {.tm_wday = 3, .tm_hour = 12},
	    .power = {.charge = (double)NAN},
	    .others = (double)NAN,
	    .checked = true,
	    .quota = &no_quota};
}

static void
expect(const struct settings_eligibility *rules, const struct readings *now,
    enum wait_reason reason, enum wait_reason training, enum wait_reason sending)
{
	struct verdict v;

	verdict_find(&v, rules, now);
	assert_string_equal(wait_reason_name(v.reason), wait_reason_name(reason));
	assert_string_equal(wait_reason_name(v.training), wait_reason_name(training));
	assert_string_equal(wait_reason_name(v.sending), wait_reason_name(sending));
	assert_int_equal(*v.text != '\0', reason != WAIT_NONE);
}

static void
rules_against_readings(void **state)
{
	struct settings_eligibility none = {.mains = false}, mains = {.mains = true},
				    forty = {.battery_min = 40}, night = {.mains = true},
				    pause = {.metered_pauses = true}, modem = pause, cable = pause;
	struct readings now = fine();
	struct why why = {""};

	(void)state;
	modem.link = SETTINGS_LINK_METERED;
	cable.link = SETTINGS_LINK_UNMETERED;
	assert_int_equal(hours_parse(&night.hours, "22:00-06:00", &why), ERR_OK);
	expect(&none, &now, WAIT_NONE, WAIT_NONE, WAIT_NONE);
	expect(&modem, &now, WAIT_METERED, WAIT_NONE, WAIT_METERED);
	now.power = (struct power){.battery = true, .charge = 39, .name = "BAT0"};
	now.link = (struct link){.metered = true, .interface = "wwan0"};
	expect(&none, &now, WAIT_NONE, WAIT_NONE, WAIT_NONE);
	expect(&mains, &now, WAIT_ON_BATTERY, WAIT_ON_BATTERY, WAIT_NONE);
	expect(&forty, &now, WAIT_BATTERY_LOW, WAIT_BATTERY_LOW, WAIT_NONE);
	expect(&night, &now, WAIT_HOURS, WAIT_HOURS, WAIT_NONE);
	expect(&pause, &now, WAIT_METERED, WAIT_NONE, WAIT_METERED);
	expect(&cable, &now, WAIT_NONE, WAIT_NONE, WAIT_NONE);
	now.power.charge = 40;
	expect(&forty, &now, WAIT_NONE, WAIT_NONE, WAIT_NONE);
	now.power.charge = (double)NAN;
	expect(&forty, &now, WAIT_NONE, WAIT_NONE, WAIT_NONE);
	now.busy = true;
	expect(&none, &now, WAIT_MACHINE_BUSY, WAIT_MACHINE_BUSY, WAIT_NONE);
	now.hot = true;
	expect(&pause, &now, WAIT_HOT, WAIT_HOT, WAIT_METERED);
}

static void
caps_keep_deltas(void **state)
{
	struct settings_eligibility none = {.mains = false};
	struct quota up = {.most = {1, 0}, .used = {1, 0}}, down = {.most = {0, 1}, .used = {0, 1}};
	struct readings now = fine();

	(void)state;
	now.quota = &up;
	expect(&none, &now, WAIT_DATA_CAP, WAIT_NONE, WAIT_DATA_CAP);
	now.quota = &down;
	expect(&none, &now, WAIT_DATA_CAP, WAIT_NONE, WAIT_NONE);
}

static void
words_of_programs(void **state)
{
	static const struct {
		const char *said, *word;
	} all[] = {{"", "check"}, {"lab-in-use", "lab-in-use"}, {"the lab is in use", "check"},
	    {"no-job", "check"}, {"on-battery", "check"},
	    {"a-word-that-is-too-long-to-travel", "check"}};
	struct settings_eligibility none = {.mains = false};
	struct readings now = fine();
	struct verdict v;

	(void)state;
	now.checked = false;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		snprintf(now.said, sizeof(now.said), "%s", all[i].said);
		verdict_find(&v, &none, &now);
		assert_int_equal(v.reason, WAIT_CHECK);
		assert_int_equal(v.training, WAIT_CHECK);
		assert_string_equal(v.word, all[i].word);
	}
}

/* --- the whole */

static struct settings *
settings_of(const char *text)
{
	struct settings *s = NULL;
	struct why why = {""};

	if (settings_parse(&s, "test", text, strlen(text), &why))
		fail_msg("%s", why.text);
	return s;
}

static bool
count_asks(void *context, char said[VERDICT_TEXT_MAX])
{
	++*(unsigned *)context;
	strcpy(said, "not-now");
	return false;
}

static void
asked_once_a_minute(void **state)
{
	struct settings *s = settings_of("[eligibility]\ncheck = /bin/true\n");
	struct eligibility *e = NULL;
	struct why why = {""};
	unsigned asks = 0;

	(void)state;
	assert_int_equal(eligibility_new(&e, s, root, &why), ERR_OK);
	eligibility_check_with(e, count_asks, &asks);
	for (unsigned i = 0; i < 1000; i++)
		assert_string_equal(eligibility_look(e)->word, "not-now");
	assert_int_equal(asks, 1);
	eligibility_free(e);
	/* Nobody here can ask it. */
	assert_int_equal(eligibility_new(&e, s, root, &why), ERR_OK);
	assert_int_equal(eligibility_look(e)->reason, WAIT_CHECK);
	eligibility_free(e);
	settings_free(s);
}

static void
nothing_without_rules(void **state)
{
	static const char *const all[] = {"", "[eligibility]\n",
	    "[eligibility]\npower = any\nlink = metered\nmetered = allow\nbattery_min = 0\n"};
	struct eligibility *e = NULL;
	struct why why = {""};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct settings *s = settings_of(all[i]);
		assert_int_equal(eligibility_new(&e, s, root, &why), ERR_OK);
		assert_null(e);
		settings_free(s);
	}
}

static void
link_is_looked_at_before_sending(void **state)
{
	struct settings *s = settings_of("[eligibility]\npower = mains\nmetered = pause\n");
	struct eligibility *e = NULL;
	struct why why = {""};

	(void)state;
	put("/sys/class/net/wwan0/uevent", "DEVTYPE=wwan\n");
	assert_int_equal(eligibility_new(&e, s, root, &why), ERR_OK);
	assert_int_equal(eligibility_look(e)->reason, WAIT_NONE);
	put("/proc/net/route",
	    ROUTES "wwan0\t00000000\t01000A0A\t0003\t0\t0\t700\t00000000\t0\t0\t0\n");
	assert_int_equal(eligibility_look(e)->reason, WAIT_NONE);
	usleep(1100000);
	assert_int_equal(eligibility_look_at_link(e)->sending, WAIT_METERED);
	eligibility_free(e);
	settings_free(s);
}

int
main(void)
{
#define IN_ROOT(test) cmocka_unit_test_setup_teardown(test, new_root, drop_root)
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(own_time_is_no_load),
	    cmocka_unit_test(steps_of_load),
	    cmocka_unit_test(children_are_ours),
	    IN_ROOT(busy_of_proc_stat),
	    IN_ROOT(hottest_sensor),
	    cmocka_unit_test(heat_rests),
	    IN_ROOT(modems_are_metered),
	    IN_ROOT(days_of_bytes),
	    IN_ROOT(days_that_jump),
	    cmocka_unit_test(no_count_no_bytes),
	    cmocka_unit_test(rules_against_readings),
	    cmocka_unit_test(caps_keep_deltas),
	    cmocka_unit_test(words_of_programs),
	    IN_ROOT(asked_once_a_minute),
	    IN_ROOT(nothing_without_rules),
	    IN_ROOT(link_is_looked_at_before_sending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
