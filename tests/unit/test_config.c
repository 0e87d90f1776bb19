/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file.h"

/* The table of keys is needed to hold it against the document. */
#include "config.c"

static struct config c;
static struct why why;

static enum err
parse(const char *text)
{
	memset(&why, 0, sizeof(why));
	return config_parse(&c, "rivuletd.conf", text, strlen(text), &why);
}

static void
test_defaults(void **state)
{
	(void)state;
	memset(&c, 0xff, sizeof(c));
	assert_int_equal(parse(""), ERR_OK);
	assert_int_equal(c.listen_count, 1);
	assert_int_equal(c.listen[0].port, 7443);
	assert_string_equal(c.listen[0].host, "");
	assert_string_equal(c.state_dir, "/var/lib/rivulet");
	assert_string_equal(c.admin_socket, "/run/rivulet/admin.sock");
	assert_int_equal(c.io_threads, 0);
	assert_int_equal(c.worker_threads, 0);
	assert_int_equal(c.evaluation_threads, 0);
	assert_int_equal(c.log_level, LOG_LEVEL_INFO);
	assert_int_equal(c.connections, 10000);
	assert_int_equal(c.header_bytes, 32 << 10);
	assert_int_equal(c.json_bytes, 1 << 20);
	assert_true(c.model_bytes == 4ull << 30);
	assert_int_equal(c.header_timeout_s, 10);
	assert_int_equal(c.idle_timeout_s, 75);
	assert_int_equal(c.slow_upload_bytes, 1024);
	assert_int_equal(c.slow_upload_s, 60);
	assert_int_equal(c.long_poll_s, 50);
	assert_int_equal(c.handshakes, 256);
	assert_int_equal(c.handshakes_per_address, 2);
	assert_true(c.requests_per_minute == 12000 && c.connections_per_device == 64);
	assert_true(c.output_bytes == 16u << 20);
	assert_int_equal(c.strangers_cpu, 30);
	assert_int_equal(c.retry_after_s, 5);
	assert_true(c.spool_quota == 0 && !c.spool_memory && !c.spool_path[0] &&
	    !c.spool_key_file[0] && c.spool_part_s == 3600);
	assert_int_equal(c.keep_last, 3);
	assert_int_equal(c.keep_every, 10);
	assert_int_equal(c.device_validity_s, 365 * 86400);
	assert_int_equal(c.rotate_every_s, 3600);
	assert_string_equal(c.probe.host, "");
	assert_int_equal(c.data_count, 0);
}

static const char all_keys[] =
    "# a comment\n"
    "[server]\n"
    "listen = 127.0.0.1:0\n"
    "listen = [::1]:8443 ; inline\n"
    "  listen = 9443\r\n"
    "state_dir = /srv/with space = and sign\n"
    "admin_socket=off\n"
    "probe_listen = 127.0.0.2:8080\n"
    "io_threads: 3\n"
    "worker_threads = 4\n"
    "log_level = debug\n"
    "\n"
    "; another\n"
    "[limits] ; what comes in\n"
    "connections = 1\nheader_bytes = 64K\njson_bytes = 2m\nmodel_bytes = 5G\n"
    "header_timeout = 2\nidle_timeout = 3\nslow_upload_bytes = 4\nslow_upload_time = "
    "5\n"
    "long_poll = 6\nhandshakes = 7\nhandshakes_per_address = 8\nretry_after = "
    "9\nrequests_per_minute = 20\nconnections_per_device = 21\noutput_bytes = 22M\n"
    "strangers_cpu = 23\n"
    "[spool]\nquota = 10G\nmode = memory\npath = /run/spool\nkey_file = /k\npart_time = 5m\n"
    "[retention]\nkeep_last = 11\nkeep_every = 0\n"
    "[identity]\ndevice_validity = 12h\n"
    "[data digits-1.x_y]\nseed = 18446744073709551615\nformat = glyphs\nfirst_hand = "
    "13\n"
    "hands = 14\ncount = 15\n"
    "[data mnist]\nformat = idx\nimages = /i\nlabels = /l\n"
    "[data table]\nformat = csv\npath = /p\nlabel = y\nkind = regression\n"
    "[data plain]\nformat = glyphs\n"
    "[data last]\nformat = csv\npath = /p\nlabel = y";

/* Every key set to something else than its default. */
static void
test_all_keys(void **state)
{
	(void)state;
	assert_int_equal(parse(all_keys), ERR_OK);
	assert_int_equal(c.listen_count, 3);
	assert_string_equal(c.listen[0].host, "127.0.0.1");
	assert_int_equal(c.listen[0].port, 0);
	assert_string_equal(c.listen[1].host, "::1");
	assert_int_equal(c.listen[1].port, 8443);
	assert_string_equal(c.listen[2].host, "");
	assert_int_equal(c.listen[2].port, 9443);
	assert_string_equal(c.state_dir, "/srv/with space = and sign");
	assert_string_equal(c.admin_socket, "");
	assert_true(c.io_threads == 3 && c.worker_threads == 4 && c.log_level == LOG_LEVEL_DEBUG);
	assert_true(c.connections == 1 && c.header_bytes == 64 << 10 && c.json_bytes == 2 << 20);
	assert_true(
	    c.model_bytes == 5ull << 30 && c.header_timeout_s == 2 && c.idle_timeout_s == 3);
	assert_true(c.slow_upload_bytes == 4 && c.slow_upload_s == 5 && c.long_poll_s == 6);
	assert_true(c.handshakes == 7 && c.handshakes_per_address == 8 && c.retry_after_s == 9);
	assert_true(c.requests_per_minute == 20 && c.connections_per_device == 21);
	assert_true(c.output_bytes == 22u << 20);
	assert_int_equal(c.strangers_cpu, 23);
	assert_true(c.spool_memory && c.spool_part_s == 300);
	assert_string_equal(c.spool_path, "/run/spool");
	assert_string_equal(c.spool_key_file, "/k");
	assert_true(c.spool_quota == 10ull << 30 && c.keep_last == 11 && c.keep_every == 0);
	assert_int_equal(c.device_validity_s, 43200);
	assert_string_equal(c.probe.host, "127.0.0.2");
	assert_int_equal(c.probe.port, 8080);
	assert_int_equal(c.data_count, 5);
	const struct config_data *d = config_data_find(&c, "digits-1.x_y");
	assert_non_null(d);
	assert_true(
	    d->source.format == DATA_GLYPHS && d->seed == UINT64_MAX && d->first_hand == 13);
	assert_true(d->hands == 14 && d->count == 15);
	d = config_data_find(&c, "mnist");
	assert_true(d && d->source.format == DATA_IDX);
	assert_string_equal(d->source.images, "/i");
	assert_string_equal(d->source.labels, "/l");
	d = config_data_find(&c, "table");
	assert_true(d && d->source.format == DATA_CSV && d->source.regression);
	assert_string_equal(d->source.path, "/p");
	assert_string_equal(d->source.label, "y");
	d = config_data_find(&c, "plain");
	assert_true(
	    d && d->seed == 0 && d->first_hand == 1000000 && d->hands == 50 && d->count == 2000);
	d = config_data_find(&c, "last");
	assert_true(d && !d->source.regression);
	assert_null(config_data_find(&c, "las"));
}

static const struct {
	const char *text, *why;
} error_cases[] = {
    {"[limits]\nconections = 3\n",
	"rivuletd.conf:2: [limits] conections: unknown key (did you mean connections?)"},
    {"[limits]\n\n  colour = 3\n", "rivuletd.conf:3: [limits] colour: unknown key"},
    {"[limits]\nlisten = 3\n",
	"rivuletd.conf:2: [limits] listen: unknown key: it belongs in [server]"},
    {"[data x]\nshard = 1/2\n",
	"rivuletd.conf:2: [data x] shard: unknown key: it belongs in [data NAME] of a device's "
	"rivulet.conf"},
    {"[data x]\nlong_poll = 3\n",
	"rivuletd.conf:2: [data x] long_poll: unknown key: it belongs in [limits]"},
    {"[trainer t]\n",
	"rivuletd.conf:1: [trainer t]: unknown section: it belongs in a device's rivulet.conf"},
    {"[limts]\n", "rivuletd.conf:1: [limts]: unknown section (did you mean [limits]?)"},
    {"\n[colours]\n", "rivuletd.conf:2: [colours]: unknown section"},
    {"[data]\n", "rivuletd.conf:1: [data]: unknown section (did you mean [data NAME]?)"},
    {"listen = 7443\n", "rivuletd.conf:1: listen: stands before any [section]"},
    {"[server\n", "rivuletd.conf:1: not a [section]"},
    {"[server] x\n", "rivuletd.conf:1: something follows the section's bracket"},
    {"[server]\nlisten\n",
	"rivuletd.conf:2: neither a [section] nor \"key = value\" nor a comment"},
    /* The first mistake is the one named. */
    {"[server]\nlisten\ncolour = 3\n",
	"rivuletd.conf:2: neither a [section] nor \"key = value\" nor a comment"},
    {"[server]\ncolour = 3\nlisten\n", "rivuletd.conf:2: [server] colour: unknown key"},
    {"[server]\nlisten\n[colours]\n",
	"rivuletd.conf:2: neither a [section] nor \"key = value\" nor a comment"},
    {"[limits]\nlong_poll = 1\n[server]\n[limits]\nlong_poll = 2\n",
	"rivuletd.conf:5: [limits] long_poll: given twice"},
    {"[server]\nstate_dir =\n", "rivuletd.conf:2: [server] state_dir: has no value"},
    {"[server]\nstate_dir = ; nothing\n", "rivuletd.conf:2: [server] state_dir: has no value"},
    {"[limits]\nevaluation_threads = 257\n",
	"rivuletd.conf:2: [limits] evaluation_threads: \"257\" is not auto or a whole "
	"number from 0 to 256"},
    {"[limits]\nevaluation_threads = all\n",
	"rivuletd.conf:2: [limits] evaluation_threads: \"all\" is not auto or a whole "
	"number from 0 to 256"},
    {"[server]\nio_threads = 257\n",
	"rivuletd.conf:2: [server] io_threads: \"257\" is not a whole number from 0 to "
	"256"},
    {"[server]\nio_threads = -1\n",
	"rivuletd.conf:2: [server] io_threads: \"-1\" is not a whole number from 0 to 256"},
    {"[limits]\nconnections = 0\n",
	"rivuletd.conf:2: [limits] connections: \"0\" is not a whole number from 1 to "
	"1000000"},
    {"[limits]\nconnections = 1K\n",
	"rivuletd.conf:2: [limits] connections: \"1K\" is not a whole number from 1 to "
	"1000000"},
    {"[limits]\nheader_bytes = 2G\n",
	"rivuletd.conf:2: [limits] header_bytes: \"2G\" is not a size from 2048 to 65536 "
	"bytes (K, M or G may follow the number)"},
    /* HTTP_HEAD_MAX. */
    {"[limits]\nheader_bytes = 65537\n",
	"rivuletd.conf:2: [limits] header_bytes: \"65537\" is not a size from 2048 to 65536 "
	"bytes (K, M or G may follow the number)"},
    /* An offer asks for 50 seconds at most. */
    {"[limits]\nlong_poll = 51\n",
	"rivuletd.conf:2: [limits] long_poll: \"51\" is not a whole number from 1 to 50"},
    {"[identity]\ndevice_validity = 0\n",
	"rivuletd.conf:2: [identity] device_validity: \"0\" is not a time from 1 to 3153600000 "
	"seconds (s, m, h or d may follow the number)"},
    /* Plain HTTP for all the world would be a mistake. */
    {"[server]\nprobe_listen = 0.0.0.0:80\n",
	"rivuletd.conf:2: [server] probe_listen: \"0.0.0.0:80\" is not 127.0.0.1:PORT, [::1]:PORT "
	"or off: it is plain HTTP"},
    {"[server]\nprobe_listen = 80\n",
	"rivuletd.conf:2: [server] probe_listen: \"80\" is not 127.0.0.1:PORT, [::1]:PORT or off: "
	"it is plain HTTP"},
    {"[server]\nlog_level = loud\n",
	"rivuletd.conf:2: [server] log_level: \"loud\" is not error, warn, info or debug"},
    {"[server]\nlisten = example.org:1\n",
	"rivuletd.conf:2: [server] listen: \"example.org:1\" is not ADDRESS:PORT, "
	"[IPV6-ADDRESS]:PORT or PORT"},
    {"[server]\nlisten=1\nlisten=2\nlisten=3\nlisten=4\nlisten=5\nlisten=6\nlisten="
     "7\nlisten=8\n"
     "listen=9\n",
	"rivuletd.conf:10: [server] listen: more than 8 addresses"},
    {"[server]\n# fine\na\x1b[0m = 1\n", "rivuletd.conf:3: the line holds a control character"},
    {"[data a b]\n",
	"rivuletd.conf:1: [data a b]: a name has 1 to 63 of the characters A-Z a-z 0-9 . _ "
	"-"},
    {"[data x]\nformat = glyphs\n[data x]\n", "rivuletd.conf:3: [data x]: given twice"},
    {"[server]\n[data x]\n", "rivuletd.conf:2: [data x] format: is missing"},
    {"[data x]\nformat = tar\n",
	"rivuletd.conf:2: [data x] format: \"tar\" is not glyphs, idx, csv, npy, text, packed or "
	"external"},
    {"[data x]\nformat = idx\nimages = /i\n[server]\n",
	"rivuletd.conf:1: [data x] labels: is missing"},
    {"[data x]\nformat = csv\nlabel = y\n", "rivuletd.conf:1: [data x] path: is missing"},
    {"[data x]\nformat = external\nexamples = 5\npath = /i\n",
	"rivuletd.conf:1: [data x] format: is one that only a device's trainer reads"},
    {"[data x]\nformat = csv\npath = /i\nmissing = drop\n",
	"rivuletd.conf:1: [data x] missing: is skip, or the number to put in place of a missing "
	"value"},
    {"[data x]\nformat = glyphs\npath = /i\n",
	"rivuletd.conf:1: [data x] path: does not belong to this format"},
    {"[data x]\nseed = 1\nformat = csv\npath = p\nlabel = l\n",
	"rivuletd.conf:1: [data x] seed: does not belong to this format"},
    {"[data x]\nkind = word\n",
	"rivuletd.conf:2: [data x] kind: \"word\" is not class or regression"},
    {"[data x]\nformat = csv\nlabell = x\n",
	"rivuletd.conf:3: [data x] labell: unknown key (did you mean labels?)"},
    {"[data x]\nseed = 18446744073709551616\nformat = glyphs\n",
	"rivuletd.conf:2: [data x] seed: \"18446744073709551616\" is not a whole number "
	"from 0 to "
	"18446744073709551615"},
};

static void
test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(error_cases) / sizeof(error_cases[0]); i++) {
		assert_int_equal(parse(error_cases[i].text), ERR_INVALID);
		assert_string_equal(why.text, error_cases[i].why);
	}
}

static void
test_listen_forms(void **state)
{
	static const char *const bad[] = {"", ":", ":1", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536",
	    "[::]", "[::]:", "[]:1", "[::1:1", "::1:1", "[1.2.3.4]:1", "1.2.3:4", "-1", "7443x",
	    "[::1]x:1"};
	static const char *const good[] = {"0", "65535", "0.0.0.0:1", "[::]:1", "[fe80::1]:65535"};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[server]\nlisten = %s\n", bad[i]);
		assert_int_equal(parse(text), ERR_INVALID);
		assert_non_null(strstr(why.text, "rivuletd.conf:2: [server] listen: "));
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), "[server]\nlisten = %s\n", good[i]);
		assert_int_equal(parse(text), ERR_OK);
	}
}

/* Whatever the length of a line, its value arrives whole or the line is an error. */
static void
test_long_lines(void **state)
{
	char text[2048], value[1500];
	size_t longest = 0;

	(void)state;
	for (size_t n = 1; n < 1400; n++) {
		memset(value, 'v', n);
		value[n] = '\0';
		int len = snprintf(
		    text, sizeof(text), "[server]\nlog_level = warn\nstate_dir=%s\n", value);
		/* A line that was split would put its rest into this key. */
		memcpy(value, "v", 1);
		enum err e = parse(text);
		assert_true(len > 0);
		if (e) {
			assert_int_equal(e, ERR_INVALID);
			assert_non_null(strstr(why.text, "rivuletd.conf:3: "));
			assert_non_null(strstr(why.text, "longer than"));
		} else {
			assert_string_equal(c.state_dir, value);
			longest = n;
		}
	}
	assert_int_equal(longest, CONFIG_PATH_MAX - 1);
}

static void
test_long_names(void **state)
{
	char text[256], name[80];

	(void)state;
	for (size_t n = 1; n < sizeof(name); n++) {
		memset(name, 'n', n);
		name[n] = '\0';
		snprintf(text, sizeof(text),
		    "[data %s]\nformat = glyphs\n[data other]\nformat = glyphs\n", name);
		assert_int_equal(parse(text), n < 64 ? ERR_OK : ERR_INVALID);
		if (n < 64)
			assert_non_null(config_data_find(&c, name));
	}
}

static void
test_many_data(void **state)
{
	char text[8192];
	size_t len = 0;

	(void)state;
	for (int i = 0; i < CONFIG_DATA_MAX + 1; i++) {
		assert_int_equal(parse(len ? text : ""), ERR_OK);
		len += (size_t)snprintf(
		    text + len, sizeof(text) - len, "[data n%d]\nformat = glyphs\n", i);
	}
	assert_int_equal(parse(text), ERR_INVALID);
	assert_string_equal(why.text, "rivuletd.conf:129: [data n64]: more than 64 data sets");
}

static void
test_odd_bytes(void **state)
{
	const char zero[] = "[server]\nlog_level = warn\0\n";

	(void)state;
	assert_int_equal(parse("\xef\xbb\xbf[server]\nlog_level = warn\n"), ERR_OK);
	assert_int_equal(c.log_level, LOG_LEVEL_WARN);
	assert_int_equal(config_parse(&c, "f", zero, sizeof(zero) - 1, &why), ERR_INVALID);
	assert_string_equal(why.text, "f:2: the line holds a control character");
	assert_int_equal(
	    parse("[data d]\nformat = csv\npath = /d\xc3\xa4ten\nlabel\t=\ty\n"), ERR_OK);
	assert_string_equal(c.data[0].source.path, "/d\xc3\xa4ten");
	assert_string_equal(c.data[0].source.label, "y");
	assert_int_equal(config_parse(&c, "f", "[limits]\nx = 1", 14, NULL), ERR_INVALID);
}

static void
test_load(void **state)
{
	char path[] = "/tmp/test_config.XXXXXX", expected[128], longer[400];
	const char text[] = "[server]\nlisten = 1\nlog_level = x\n";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	assert_int_equal(config_load(&c, path, &why), ERR_INVALID);
	snprintf(expected, sizeof(expected),
	    "%s:3: [server] log_level: \"x\" is not error, warn, info or debug", path);
	assert_string_equal(why.text, expected);
	assert_int_equal(ftruncate(fd, 20), 0);
	assert_int_equal(config_load(&c, path, &why), ERR_OK);
	assert_int_equal(c.listen[0].port, 1);
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	assert_int_equal(config_load(&c, path, &why), ERR_LIMIT);
	close(fd);
	unlink(path);
	assert_int_equal(config_load(&c, path, &why), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, path));
	/* But for the one that packages leave to the operator. */
	if (access(CONFIG_DEFAULT, F_OK) != 0) {
		assert_int_equal(config_load(&c, CONFIG_DEFAULT, &why), ERR_OK);
		assert_int_equal(c.listen[0].port, 7443);
	}
	/* The reason survives a path that would fill the message. */
	memset(longer, 'd', sizeof(longer));
	strcpy(longer + 300, "/c.conf");
	assert_int_equal(config_parse(&c, longer, text, sizeof(text) - 1, &why), ERR_INVALID);
	assert_true(strncmp(why.text, "c.conf:3: ", 10) == 0);
}

static void
put(const char *dir, const char *name, const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, text, strlen(text), 0644, NULL), ERR_OK);
}

/* FILE, then FILE.d in the order of names: values replace each other, listeners add up. */
static void
test_load_directory(void **state)
{
	char dir[] = "/tmp/test_config.XXXXXX", path[64], parts[64], expected[160];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/c", dir);
	snprintf(parts, sizeof(parts), "%s/c.d", dir);
	assert_int_equal(file_mkdirs(parts, 0755, NULL), ERR_OK);
	put(dir, "c", "[server]\nlisten = 1\n[limits]\nlong_poll = 1\n[data d]\nformat = csv\n");
	put(parts, "b.conf", "[limits]\nlong_poll = 3\n");
	put(parts, "a.conf",
	    "[limits]\nlong_poll = 2\nidle_timeout = 9\n[server]\nlisten = 2\n"
	    "[data d]\npath = /p\nlabel = y\n");
	assert_int_equal(config_load(&c, path, &why), ERR_OK);
	assert_int_equal(c.long_poll_s, 3);
	assert_int_equal(c.idle_timeout_s, 9);
	assert_true(c.listen_count == 2 && c.listen[0].port == 1 && c.listen[1].port == 2);
	assert_string_equal(config_data_find(&c, "d")->source.path, "/p");
	put(parts, "c.conf", "[limits]\nlong_pol = 3\n");
	assert_int_equal(config_load(&c, path, &why), ERR_INVALID);
	snprintf(expected, sizeof(expected),
	    "%s/c.conf:2: [limits] long_pol: unknown key (did you mean long_poll?)", parts);
	assert_string_equal(why.text, expected);
	assert_int_equal(file_empty_dir(parts, NULL) || rmdir(parts), 0);
	assert_int_equal(file_empty_dir(dir, NULL) || rmdir(dir), 0);
}

/* Each default is within its own range. */
static void
test_defaults_fit(void **state)
{
	static struct config_data d;

	(void)state;
	for (const struct ini_section *s = sections; s->name; s++) {
		for (const struct ini_key *k = s->keys; k->name; k++) {
			char *base = s->open ? (char *)&d : (char *)&c;
			c.listen_count = 0;
			if (k->fallback)
				assert_int_equal(
				    k->set(k, base + k->offset, k->fallback, &why), ERR_OK);
			assert_true(!k->forms || !(k->needs & ~k->forms));
		}
	}
}

/* The row of a key in the text that follows its section's title. */
static void
check_row(const char *section, const struct ini_section *s, const struct ini_key *k)
{
	char row[128];

	snprintf(row, sizeof(row), "\n| `%s` |", k->name);
	const char *line = strstr(section, row);
	const char *next = strstr(section + 1, "\n## ");
	if (!line || (next && next < line))
		fail_msg("[%s] has no row for %s", s->name, k->name);
	snprintf(row, sizeof(row), " | %s%s%s |", k->fallback ? "`" : "",
	    k->fallback ? k->fallback : "none", k->fallback ? "`" : "");
	const char *found = strstr(line + 1, row);
	if (!found || found > strchr(line + 1, '\n'))
		fail_msg("the row of %s does not say%s", k->name, row);
}

/* docs/configuration.md has a row "| `key` | ... | default | ..." under each section. Run from the repository. */
static void
test_document(void **state)
{
	char *text, title[64];
	size_t len;

	(void)state;
	if (access("docs/configuration.md", R_OK) != 0)
		skip();
	assert_int_equal(file_read("docs/configuration.md", 1 << 20, &text, &len, &why), ERR_OK);
	for (const struct ini_section *s = sections; s->name; s++) {
		snprintf(title, sizeof(title), "\n## [%s%s]", s->name, s->open ? " NAME" : "");
		const char *section = strstr(text, title);
		if (!section)
			fail_msg("no%s", title);
		for (const struct ini_key *k = s->keys; k->name; k++)
			if (k->set)
				check_row(section, s, k);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_all_keys),
	    cmocka_unit_test(test_errors),
	    cmocka_unit_test(test_listen_forms),
	    cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_long_names),
	    cmocka_unit_test(test_many_data),
	    cmocka_unit_test(test_odd_bytes),
	    cmocka_unit_test(test_load),
	    cmocka_unit_test(test_load_directory),
	    cmocka_unit_test(test_defaults_fit),
	    cmocka_unit_test(test_document),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
