/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "figures_file.h"
#include "text_file.h"

static const char *
text_of(struct buf *b, const struct device_figures *f)
{
	const struct figures_file m = {.start = 1795900000.25};

	buf_deinit(b);
	buf_init(b, 1 << 20);
	assert_int_equal(figures_file_print(b, &m, f), ERR_OK);
	return buf_str(b);
}

static void
has(const char *text, const char *line)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(text, whole))
		fail_msg("no line %s in %s", line, text);
}

/* Of a closed set one series is 1, and there are as many series whatever is the case. */
static unsigned
ones(const char *text, const char *name, unsigned *all)
{
	unsigned n = 0;

	*all = 0;
	for (const char *at = text; (at = strstr(at, name)); at++) {
		if (at[-1] != '\n')
			continue;
		++*all;
		n += strstr(at, "} 1\n") == strstr(at, "} ");
	}
	return n;
}

static void
test_figures(void **state)
{
	const struct device_figures f = {.task = DEVICE_TRAINS,
	    .contact = 1795901990.5,
	    .rounds = 7,
	    .sent = UINT64_C(123456789012345),
	    .received = 5,
	    .outbox_deltas = 2,
	    .outbox_bytes = 1 << 20,
	    .certificate_end = 1827437990};
	struct buf b = {.data = NULL};

	(void)state;
	const char *text = text_of(&b, &f);
	has(text, "rivulet_agent_last_contact_timestamp_seconds 1795901990.5");
	has(text, "rivulet_agent_start_time_seconds 1795900000.25");
	has(text, "# TYPE rivulet_agent_sent_bytes_total counter");
	has(text, "rivulet_agent_sent_bytes_total 123456789012345");
	has(text, "rivulet_agent_received_bytes_total 5");
	has(text, "rivulet_agent_rounds_total 7");
	has(text, "rivulet_agent_outbox_deltas 2");
	has(text, "rivulet_agent_outbox_bytes 1048576");
	has(text, "rivulet_agent_certificate_expiry_timestamp_seconds 1827437990");
	has(text, "rivulet_agent_task{task=\"train\"} 1");
	has(text, "rivulet_agent_task{task=\"none\"} 0");
	has(text, "rivulet_agent_waiting{reason=\"none\"} 1");
	text = text_of(&b, &(struct device_figures){.contact = 0});
	has(text, "rivulet_agent_last_contact_timestamp_seconds NaN");
	buf_deinit(&b);
}

static void
test_closed_sets(void **state)
{
	static const char *const refusals[] = {
	    "", "unreachable", "suspended", "revoked", "left", "refused"};
	struct buf b = {.data = NULL};
	char line[96];
	unsigned all;

	(void)state;
	for (unsigned s = STANDING_GOOD; s <= STANDING_REFUSED; s++)
		for (enum wait_reason r = WAIT_NONE; r <= WAIT_UNKNOWN; r++) {
			const struct device_figures f = {.task = (enum device_task)(r % 3),
			    .reason = r,
			    .standing = (enum standing)s};
			const char *text = text_of(&b, &f);
			assert_int_equal(ones(text, "rivulet_agent_waiting{", &all), 1);
			assert_int_equal(all, WAIT_UNKNOWN + 1 + STANDING_REFUSED);
			assert_int_equal(ones(text, "rivulet_agent_task{", &all), 1);
			assert_int_equal(all, 3);
			snprintf(line, sizeof(line), "rivulet_agent_waiting{reason=\"%s\"} 1",
			    refusals[s]);
			if (s != STANDING_GOOD)
				has(text, line);
			assert_null(strstr(text, "reason=\"\""));
		}
	buf_deinit(&b);
}

static void
test_file(void **state)
{
	char dir[] = "/tmp/rivulet-figures-XXXXXX", path[64], temp[96];
	const struct device_figures f = {.task = DEVICE_NO_TASK};
	struct buf b = {.data = NULL};
	struct why why = {""};
	struct stat st;
	char *read = NULL;
	size_t len;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.prom", dir);
	snprintf(temp, sizeof(temp), "%s.tmp-%d", path, (int)getpid());
	text_of(&b, &f);
	umask(0077);
	/* Twice: in the place of what is there. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(figures_file_write(path, &b, &why), ERR_OK);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(text_file_read(path, 1 << 20, &read, &len, &why), ERR_OK);
	assert_int_equal(len, b.len);
	assert_memory_equal(read, b.data, len);
	free(read);
	assert_int_not_equal(access(temp, F_OK), 0);
	/* A link in the place of the other name is not followed. */
	assert_int_equal(symlink(path, temp), 0);
	assert_int_not_equal(figures_file_write(path, &b, &why), ERR_OK);
	assert_non_null(strstr(why.text, temp));
	unlink(path);
	unlink(temp);
	rmdir(dir);
	assert_int_not_equal(figures_file_write(path, &b, &why), ERR_OK);
	assert_non_null(strstr(why.text, path));
	buf_deinit(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_figures),
	    cmocka_unit_test(test_closed_sets),
	    cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
