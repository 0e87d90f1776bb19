/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "log.h"

static int saved, pipe_fd[2];
static char got[65536];

static void
capture_start(void)
{
	assert_int_equal(pipe(pipe_fd), 0);
	saved = dup(STDERR_FILENO);
	dup2(pipe_fd[1], STDERR_FILENO);
	close(pipe_fd[1]);
}

/* What was logged since, as text. */
static const char *
capture_end(void)
{
	size_t len = 0;
	ssize_t n;

	dup2(saved, STDERR_FILENO);
	close(saved);
	while ((n = read(pipe_fd[0], got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	close(pipe_fd[0]);
	got[len] = '\0';
	return got;
}

/* Pretends that the pipe is the journal's, which also takes the time stamp away. */
static void
journal_start(void)
{
	char id[64];
	struct stat st;

	capture_start();
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(id, sizeof(id), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", id, 1);
}

static const char *
journal_end(void)
{
	unsetenv("JOURNAL_STREAM");
	return capture_end();
}

static void
test_pairs(void **state)
{
	(void)state;
	journal_start();
	log_event(LOG_LEVEL_INFO, "round.committed", LOG_S("job", "a1:b/c.d+e_f-0"),
	    LOG_U("round", 3), LOG_D("loss", 0.125), LOG_D("accuracy", NAN));
	log_event(LOG_LEVEL_ERROR, "stop");
	assert_string_equal(journal_end(),
	    "<6>info round.committed job=a1:b/c.d+e_f-0 round=3 loss=0.125 accuracy=nan\n<3>error "
	    "stop\n");
}

static void
test_quotes(void **state)
{
	(void)state;
	journal_start();
	log_event(LOG_LEVEL_WARN, "e", LOG_S("a", "two words"), LOG_S("b", ""), LOG_S("c", NULL),
	    LOG_S("d", "\"\\"), LOG_S("e", "x\n<0>y\x1b[0m\x7f"), LOG_S("f", "\xc2\x9b"),
	    LOG_S("g", "a=b"));
	assert_string_equal(journal_end(),
	    "<4>warn e a=\"two words\" b=\"\" c=\"\" d=\"\\\"\\\\\" e=\"x\\x0a<0>y\\x1b[0m\\x7f\" "
	    "f=\"\\xc2\\x9b\" g=\"a=b\"\n");
}

static void
test_levels(void **state)
{
	(void)state;
	journal_start();
	log_event(LOG_LEVEL_DEBUG, "hidden");
	log_set_level(LOG_LEVEL_DEBUG);
	log_event(LOG_LEVEL_DEBUG, "shown");
	log_set_level(LOG_LEVEL_ERROR);
	log_event(LOG_LEVEL_WARN, "hidden");
	log_event(LOG_LEVEL_ERROR, "shown");
	log_set_level(LOG_LEVEL_INFO);
	assert_string_equal(journal_end(), "<7>debug shown\n<3>error shown\n");
}

static void
test_time_stamp(void **state)
{
	regex_t re;

	(void)state;
	assert_int_equal(regcomp(&re,
			     "^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-"
			     "9]{3}Z "
			     "info e k=1\n$",
			     REG_EXTENDED | REG_NOSUB),
	    0);
	/* Another stream's id in the environment is not the journal's. */
	setenv("JOURNAL_STREAM", "1:2", 1);
	capture_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_U("k", 1));
	assert_int_equal(regexec(&re, capture_end(), 0, NULL, 0), 0);
	unsetenv("JOURNAL_STREAM");
	regfree(&re);
}

/* Every length of a value around the limit: never above 1 KiB, always one line, a pair whole or absent. */
static void
test_long_lines(void **state)
{
	char value[2000];

	(void)state;
	for (size_t n = 900; n < 1100; n++) {
		memset(value, 'v', n);
		value[n] = '\0';
		journal_start();
		log_event(LOG_LEVEL_INFO, "e", LOG_U("first", 1), LOG_S("long", value));
		const char *line = journal_end();
		size_t len = strlen(line);
		assert_in_range(len, 1, 1024);
		assert_ptr_equal(strchr(line, '\n'), line + len - 1);
		if (strstr(line, "long"))
			assert_int_equal(len, strlen("<6>info e first=1 long=\n") + n);
		else
			assert_string_equal(line, "<6>info e first=1 ...\n");
		assert_true(n < 990 ? strstr(line, "long") != NULL : true);
		assert_true(n > 1010 ? strstr(line, "long") == NULL : true);
	}
	memset(value, '\x01', 1500);
	value[1500] = '\0';
	journal_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_S("long", value), LOG_U("after", 1));
	/* What comes after a pair that has no room stays. */
	assert_string_equal(journal_end(), "<6>info e after=1 ...\n");
}

/* Bytes as the line's JSON strings have them: \u00XX stands for a byte. */
static void
assert_bytes(const struct json *object, const char *key, const char *want)
{
	const struct json *v = json_get(object, key);
	const unsigned char *bytes;

	bytes = (const unsigned char *)json_string(v);
	assert_non_null(bytes);
	for (; *want; want++) {
		unsigned c = *bytes++;
		/* Two bytes of UTF-8 for a character up to 255. */
		if (c >= 0xc2 && c <= 0xc3)
			c = (c & 3) << 6 | (*bytes++ & 0x3f);
		assert_int_equal(c, (unsigned char)*want);
	}
	assert_int_equal(*bytes, '\0');
}

static const struct json *
json_line(const char *line, struct json **out)
{
	const size_t len = strlen(line);
	struct why why = {""};

	json_free(*out);
	assert_in_range(len, 2, 1024);
	assert_ptr_equal(strchr(line, '\n'), line + len - 1);
	assert_memory_equal(line, "<6>", 3);
	for (size_t i = 0; i + 1 < len; i++)
		assert_in_range((unsigned char)line[i], 0x20, 0x7e);
	assert_int_equal(json_parse(out, line + 3, len - 3, &why), ERR_OK);
	return *out;
}

static void
test_json(void **state)
{
	static const char hostile[] =
	    "\"\\/ x\n\r\t\b\f\x01\x1b[0m\x7f\xc2\x9b\xc3\xa9\xff</script>%s{}";
	char all[256];
	struct json *object = NULL;

	(void)state;
	for (int i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	all[255] = '\0';
	log_set_format(LINE_JSON);
	journal_start();
	log_event(LOG_LEVEL_INFO, "round.committed", LOG_S("job", "a1"), LOG_U("round", 3),
	    LOG_D("loss", 0.125), LOG_D("no", NAN), LOG_D("far", -INFINITY), LOG_S("none", NULL),
	    LOG_U("most", UINT64_MAX), LOG_D("small", -1e-300));
	const char *line = journal_end();
	const char *rest = strstr(line, "\"event\"");
	assert_non_null(rest);
	assert_string_equal(rest,
	    "\"event\":\"round.committed\",\"job\":\"a1\",\"round\":3,\"loss\":0.125,\"no\":null,"
	    "\"far\":null,\"none\":\"\",\"most\":18446744073709551615,\"small\":-1e-300}\n");
	json_line(line, &object);
	journal_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_S("hostile", hostile), LOG_U("end", 1));
	json_line(journal_end(), &object);
	assert_bytes(object, "hostile", hostile);
	/* In two lines, as most bytes take six. */
	journal_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_S("high", all + 127));
	assert_bytes(json_line(journal_end(), &object), "high", all + 127);
	all[127] = '\0';
	journal_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_S("low", all));
	assert_bytes(json_line(journal_end(), &object), "low", all);
	assert_null(json_get(object, "cut"));
	log_set_format(LINE_TEXT);
	json_free(object);
}

static void
test_json_time(void **state)
{
	regex_t re;

	(void)state;
	assert_int_equal(
	    regcomp(&re,
		"^\\{\"time\":\"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
		"\\.[0-9]{3}Z\",\"level\":\"error\",\"event\":\"e\",\"k\":1}\n$",
		REG_EXTENDED | REG_NOSUB),
	    0);
	log_set_format(LINE_JSON);
	capture_start();
	log_event(LOG_LEVEL_ERROR, "e", LOG_U("k", 1));
	assert_int_equal(regexec(&re, capture_end(), 0, NULL, 0), 0);
	log_set_format(LINE_TEXT);
	regfree(&re);
}

/* Every length of a value around the limit, of bytes that take one, two or six places. */
static void
test_json_long(void **state)
{
	static const char bytes[] = {'v', '"', '\x01', '\xff'};
	static const size_t places[] = {1, 2, 6, 6};
	struct json *object = NULL;
	char value[2000];

	(void)state;
	log_set_format(LINE_JSON);
	for (size_t b = 0; b < sizeof(bytes); b++)
		for (size_t n = 800 / places[b]; n < 1100 / places[b]; n++) {
			memset(value, bytes[b], n);
			value[n] = '\0';
			journal_start();
			log_event(LOG_LEVEL_INFO, "e", LOG_U("first", 1), LOG_S("long", value),
			    LOG_U("after", 1));
			json_line(journal_end(), &object);
			assert_non_null(json_get(object, "first"));
			const bool cut = json_get(object, "cut") != NULL;
			const bool whole = json_get(object, "long") && json_get(object, "after");
			assert_true(cut == !whole);
			if (!cut)
				assert_bytes(object, "long", value);
			assert_true(n * places[b] < 890 ? !cut : true);
			assert_true(n * places[b] > 930 ? cut : true);
		}
	log_set_format(LINE_TEXT);
	json_free(object);
}

/* No key comes twice, neither those of every line. */
static void
test_json_twice(void **state)
{
	struct json *object = NULL;

	(void)state;
	log_set_format(LINE_JSON);
	journal_start();
	log_event(LOG_LEVEL_INFO, "e", LOG_S("a", "first"), LOG_S("a", "second"),
	    LOG_S("event", "other"), LOG_S("time", "now"), LOG_U("cut", 7), LOG_U("b", 2));
	const char *line = journal_end();
	assert_non_null(strstr(line, "\"event\":\"e\",\"a\":\"first\",\"b\":2,\"cut\":true}\n"));
	json_line(line, &object);
	log_set_format(LINE_TEXT);
	json_free(object);
}

/* A line in the least room, filled to the last byte and beyond. */
static void
test_least_room(void **state)
{
	static const enum line_format formats[] = {LINE_TEXT, LINE_JSON};
	char out[LINE_ROOM_MIN + 1], value[LINE_ROOM_MIN + 8], event[LINE_ROOM_MIN + 8];
	struct json *object = NULL;

	(void)state;
	for (size_t f = 0; f < 2; f++)
		for (size_t n = 0; n < sizeof(value); n++)
			for (int journal = 0; journal < 2; journal++) {
				memset(value, 'v', n);
				memset(event, 'e', n);
				value[n] = event[n] = '\0';
				const struct line_pair pairs[] = {
				    LINE_S("a", value), LINE_S("b", value), LINE_END};
				const struct line l = {
				    journal, LINE_DEBUG, -0.5, n % 2 ? "e" : event, pairs};
				out[LINE_ROOM_MIN] = '#';
				size_t len = line_print(out, LINE_ROOM_MIN, formats[f], &l);
				assert_in_range(len, 1, LINE_ROOM_MIN);
				assert_int_equal(out[LINE_ROOM_MIN], '#');
				assert_int_equal(out[len - 1], '\n');
				if (formats[f] == LINE_TEXT)
					continue;
				json_free(object);
				const size_t skip = journal ? 3 : 0;
				assert_int_equal(
				    json_parse(&object, out + skip, len - skip, NULL), ERR_OK);
			}
	json_free(object);
}

/* What anybody can cause fills no disk. */
static void
test_crowd(void **state)
{
	unsigned lines = 0, skipped = 0, told;
	char *rest;

	(void)state;
	capture_start();
	for (int i = 0; i < 600; i++) {
		log_limited(LOG_LEVEL_INFO, "test.crowd", LOG_U("i", (unsigned)i));
		log_limited(LOG_LEVEL_DEBUG, "test.unheard", LOG_U("i", (unsigned)i));
		if (i % 200 == 199)
			usleep(1100000);
	}
	log_limited(LOG_LEVEL_INFO, "test.crowd", LOG_S("i", "last"));
	capture_end();
	for (char *line = strtok_r(got, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *skip = strstr(line, "log.skipped lines=");
		if (skip && sscanf(skip + 18, "%u", &told) == 1)
			skipped += told;
		else
			lines++;
	}
	assert_int_equal(lines + skipped, 601);
	assert_in_range(lines, 3 * LOG_CROWD + 1, 8 * LOG_CROWD);
}

static void *
chatter(void *arg)
{
	for (int i = 0; i < 100; i++)
		log_event(LOG_LEVEL_INFO, "chat", LOG_S("who", arg), LOG_U("n", 7));
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t t[2];
	char a[] = "aaaaaaaa", b[] = "bbbbbbbb";
	int lines = 0;

	(void)state;
	journal_start();
	assert_int_equal(pthread_create(&t[0], NULL, chatter, a), 0);
	assert_int_equal(pthread_create(&t[1], NULL, chatter, b), 0);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	const char *text = journal_end();
	for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n"), lines++)
		assert_true(strcmp(line, "<6>info chat who=aaaaaaaa n=7") == 0 ||
		    strcmp(line, "<6>info chat who=bbbbbbbb n=7") == 0);
	assert_ptr_equal(text, got);
	assert_int_equal(lines, 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pairs),
	    cmocka_unit_test(test_quotes),
	    cmocka_unit_test(test_levels),
	    cmocka_unit_test(test_time_stamp),
	    cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_json_time),
	    cmocka_unit_test(test_json_long),
	    cmocka_unit_test(test_json_twice),
	    cmocka_unit_test(test_least_room),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_crowd),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
