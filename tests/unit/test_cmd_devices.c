/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "buf.h"
#include "devices.h"
#include "json.h"

static struct json *
parse(const char *text)
{
	struct json *doc;

	assert_int_equal(json_parse(&doc, text, strlen(text), NULL), ERR_OK);
	return doc;
}

#define START 1700000000.0
static const char *role = "device";
static char refused[64], aborted[64]; /* an hour ago, and just now */

/* The device with this number: every third is suspended, every tenth cloned. */
static void
put_device(struct buf *b, int i)
{
	double now = (double)time(NULL);

	snprintf(refused, sizeof(refused), "{\"reason\":\"stale-round\",\"at\":%.0f}", now - 3600);
	snprintf(aborted, sizeof(aborted), "{\"reason\":\"trainer-failed\",\"at\":%.0f}", now);
	assert_int_equal(
	    buf_printf(b,
		"%s{\"device\":\"%064x\",\"name\":\"gateway-%04d-with-a-long-name\",\"role\":\"%"
		"s\","
		"\"state\":\"%s\",\"labels\":{\"site\":\"%s\",\"kind\":\"industrial-gateway\"},"
		"\"joined_at\":1.5,\"reports\":%d,\"last_contact\":%.1f,\"agent\":\"1.0\","
		"\"reason\":\"%s\",\"last_refusal\":%s,\"last_abort\":%s,"
		"\"clock_offset_s\":%d,\"disk_free_bytes\":123456789012,\"cloned\":%s}",
		i ? "," : "", i * 7919, i, role, i % 3 ? "active" : "suspended",
		i % 2 ? "north" : "south", i * 1000, START - i,
		i % 7 ? "not-selected" : "trainer-failed", i % 5 ? "null" : refused,
		i % 7 ? "null" : aborted, i * 100 - 5000, i % 10 ? "false" : "true"),
	    ERR_OK);
}

static struct json *
fleet(int n)
{
	struct buf b;

	buf_init(&b, 1u << 20);
	assert_int_equal(buf_printf(&b, "["), ERR_OK);
	for (int i = 0; i < n; i++)
		put_device(&b, i);
	assert_int_equal(buf_printf(&b, "]"), ERR_OK);
	struct json *doc = parse(buf_str(&b));
	buf_deinit(&b);
	return doc;
}

static size_t
picked(const struct json *devices, struct cmd_devices_filter filter)
{
	assert_int_equal(cmd_devices_check(&filter, NULL), ERR_OK);
	struct json *out = cmd_devices_pick(devices, &filter, START);
	size_t n = json_count(out);

	json_free(out);
	return n;
}

static void
test_filter(void **state)
{
	(void)state;
	struct json *devices = fleet(300);
	struct why why;

	assert_int_equal(picked(devices, (struct cmd_devices_filter){0}), 300);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.state = "suspended"}), 100);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.state = "left"}), 0);
	assert_int_equal(
	    cmd_devices_check(&(struct cmd_devices_filter){.state = "foo"}, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "revoked or left, not \"foo\""));
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.cloned = true}), 30);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.where = "site=north"}), 150);
	assert_int_equal(picked(devices,
			     (struct cmd_devices_filter){
				 .where = "kind=industrial-gateway,site=south", .cloned = true}),
	    30);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.where = "site=nort"}), 0);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.where = "site=north2"}), 0);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.where = "sit=north"}), 0);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.silent = "1m"}), 240);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.silent = "1h"}), 0);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.agent = "1"}), 300);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.agent = "1.0"}), 300);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.agent = "1.1"}), 0);
	assert_int_equal(picked(devices, (struct cmd_devices_filter){.agent = "1.0.0"}), 0);
	assert_int_equal(
	    cmd_devices_check(&(struct cmd_devices_filter){.silent = "long"}, &why), ERR_INVALID);
	assert_int_equal(
	    cmd_devices_check(&(struct cmd_devices_filter){.agent = ""}, &why), ERR_INVALID);
	assert_int_equal(
	    cmd_devices_check(&(struct cmd_devices_filter){.where = "site"}, &why), ERR_INVALID);
	assert_int_equal(
	    cmd_devices_check(&(struct cmd_devices_filter){.where = "=x"}, &why), ERR_INVALID);
	assert_int_equal(cmd_devices_check(&(struct cmd_devices_filter){.where = "a=b,site"}, &why),
	    ERR_INVALID);
	json_free(devices);
}

/* What the function writes to standard output. */
static char *
output_of(void (*print)(const struct json *), const struct json *v)
{
	char path[] = "/tmp/test_cmd_devices.XXXXXX";
	static char text[1000000];
	int fd = mkstemp(path), kept = dup(1);

	assert_true(fd >= 0 && kept >= 0);
	fflush(stdout);
	dup2(fd, 1);
	print(v);
	fflush(stdout);
	dup2(kept, 1);
	close(kept);
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	unlink(path);
	return text;
}

static void
test_table(void **state)
{
	(void)state;
	struct json *devices = fleet(300);
	char *text = output_of(cmd_devices_print, devices);
	size_t lines = 0;

	for (char *p = text; *p; lines++) {
		size_t len = strcspn(p, "\n");
		if (len > 120)
			fail_msg("a line of %zu: %.*s", len, (int)len, p);
		p += len + 1;
	}
	assert_int_equal(lines, 302);
	assert_non_null(strstr(text, "300 devices, 200 active, 100 suspended; 30 CLONED"));
	assert_non_null(strstr(text, "gateway-0001-wi~"));
	assert_non_null(strstr(text, "abort trainer-failed\n"));
	assert_null(strstr(text,
	    "refused stale-round")); /* something came after it: what counts is why it is idle */
	assert_non_null(strstr(text, "not-selected\n"));
	assert_non_null(strstr(text, "-82m"));
	assert_non_null(strstr(text, "115.0G"));
	json_free(devices);
	role = "admin";
	devices = fleet(1);
	assert_non_null(strstr(output_of(cmd_devices_print, devices), "suspended,admin "));
	role = "device";
	json_free(devices);
}

/* None of a large fleet is left out. */
static void
test_large(void **state)
{
	enum { DEVICES = 6600 };
	struct buf b;
	(void)state;

	buf_init(&b, 1u << 20);
	for (int i = 0; i < DEVICES; i++)
		assert_int_equal(buf_printf(&b, "%c{\"device\":\"%d\"}", i ? ',' : '[', i), ERR_OK);
	assert_int_equal(buf_printf(&b, "]"), ERR_OK);
	struct json *devices = parse(buf_str(&b));
	buf_deinit(&b);
	char *text = output_of(cmd_devices_print, devices);
	size_t lines = 0;
	for (char *p = text; *p; lines++)
		p += strcspn(p, "\n") + 1;
	assert_int_equal(lines, DEVICES + 2);
	assert_non_null(strstr(text, "\n  6599  "));
	json_free(devices);
}

static void
test_one(void **state)
{
	(void)state;
	struct json *devices = fleet(1);
	char *text = output_of(cmd_devices_one, json_at(devices, 0));

	assert_non_null(strstr(text, "labels           site=south kind=industrial-gateway\n"));
	const char *refusal = strstr(text, "last_refusal     stale-round, 20");
	assert_non_null(refusal);
	assert_non_null(strstr(refusal, "Z ("));
	assert_non_null(strstr(text, "used on two machines"));
	json_free(devices);
}

int
main(void)
{
	setenv("TZ", "IST-5:30", 1);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_filter),
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_large),
	    cmocka_unit_test(test_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
