/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "settings.h"

static const char good[] =
    "# a device\n"
    "[coordinator]\n"
    "url = https://one.example:7443, two.example\n"
    "url = three.example:99\n"
    "model_mirror = http://cache.site/rivulet/\nmirror_timeout = 90\n"
    "[device]\nthreads = 4\n"
    "[limits]\nmodel_bytes = 64M\nmemory_bytes = 1G\nseconds_per_round = 12.5\n"
    "epochs = 3\ncache_bytes = 256M\noutbox_bytes = 1G\nresidual_bytes = 3G\nexamples_bytes = 5G\n"
    "[data mnist]\n"
    "format = idx\nimages = /d/images.gz ; the training part\nlabels = /d/labels.gz\n"
    "shard = 3/100\npartition = label\nseed = 9\nallow_jobs = mnist-*, other\n"
    "[data digits]\n"
    "  format = glyphs\n  hand = 3\n\tcount = 700\nskew = 0.3\n"
    "[data sensors]\n"
    "format = csv\npath = /d/s.csv\nlabel = target\nkind = regression\n"
    "[trainer torch]\n"
    "exec = /usr/bin/python3 \"/opt/my trainer.py\" --fast\ngrace_s = 5\ndeny_jobs = *-old\n"
    "persistent = yes\nidle_exit_s = 600\nshare_jobs = yes\nkinds = train evaluate\n"
    "memory_bytes = 2G\nconfine = no\nenv = A \"B=c d\"\nread = /srv/a\nwrite = /srv/b /srv/c\n";

static struct settings *
parse(const char *text, struct why *why)
{
	struct settings *s = NULL;

	if (settings_parse(&s, "device.conf", text, strlen(text), why) != ERR_OK)
		assert_null(s);
	return s;
}

static void
test_good(void **state)
{
	struct why why = {""};
	struct settings *s = parse(good, &why);

	(void)state;
	assert_string_equal(why.text, "");
	assert_non_null(s);
	assert_int_equal(s->url_count, 3);
	assert_string_equal(s->urls[0], "https://one.example:7443");
	assert_string_equal(s->urls[1], "https://two.example:7443");
	assert_string_equal(s->urls[2], "https://three.example:99");
	assert_string_equal(s->mirror, "http://cache.site/rivulet");
	assert_true(s->mirror_timeout == 90.0);
	assert_int_equal(s->threads, 4);
	assert_int_equal(s->model_bytes, 64 << 20);
	assert_true(s->seconds_per_round > 12.4 && s->seconds_per_round < 12.6);
	assert_int_equal(s->epochs, 3);
	assert_int_equal(s->residual_bytes, 3ull << 30);
	assert_true(s->examples_bytes == 5ull << 30);
	assert_int_equal(s->data_count, 3);
	const struct settings_data *d = settings_find_data(s, "mnist");
	assert_non_null(d);
	assert_int_equal(d->source.format, DATA_IDX);
	assert_string_equal(d->source.images, "/d/images.gz");
	assert_int_equal(d->shard.index, 3);
	assert_int_equal(d->shard.count, 100);
	assert_true(d->shard.partition == SHARD_LABEL);
	assert_int_equal(d->shard.seed, 9);
	d = settings_find_data(s, "digits");
	assert_int_equal(d->hand, 3);
	assert_int_equal(d->glyph_count, 700);
	assert_int_equal(d->shard.count, 1);
	assert_true(settings_find_data(s, "sensors")->source.regression);
	assert_null(settings_find_data(s, "nothing"));
	const struct settings_trainer *t = settings_find_trainer(s, "torch");
	assert_string_equal(t->exec, "/usr/bin/python3 \"/opt/my trainer.py\" --fast");
	assert_true(t->grace_s > 4.9 && t->grace_s < 5.1);
	assert_string_equal(t->gate.deny, "*-old");
	assert_true(t->free && t->memory_bytes == 2ull << 30);
	assert_true(t->persistent && t->share_jobs && t->idle_exit_s > 599 && t->idle_exit_s < 601);
	assert_true(settings_trainer_does(t, "train") && settings_trainer_does(t, "evaluate"));
	assert_string_equal(t->environment, "A \"B=c d\"");
	assert_string_equal(t->read, "/srv/a");
	assert_string_equal(t->write, "/srv/b /srv/c");
	settings_free(s);
}

static void
test_defaults(void **state)
{
	struct settings *s = parse("", NULL);

	(void)state;
	assert_non_null(s);
	assert_int_equal(s->url_count, 0);
	assert_int_equal(s->model_bytes, (uint64_t)1 << 30);
	assert_int_equal(s->memory_bytes, 0);
	assert_true(s->examples_bytes == 4ull << 30);
	settings_free(s);
	s = parse("[trainer t]\nexec = x\n", NULL);
	const struct settings_trainer *t = &s->trainers[0];
	assert_false(t->persistent || t->share_jobs || t->idle_exit_s > 0);
	assert_true(settings_trainer_does(t, "train") && !settings_trainer_does(t, "evaluate"));
	assert_false(settings_trainer_does(t, "") || settings_trainer_does(t, "trai"));
	settings_free(s);
	/* A small cache lowers what a model may have: it must fit. */
	s = parse("[limits]\ncache_bytes = 1M\n", NULL);
	assert_int_equal(s->model_bytes, 1 << 20);
	settings_free(s);
}

/* Each bad file, and what the message must name: file and line, section and key. */
static const struct {
	const char *text, *where, *what;
} bad[] = {
    {"[device]\nshard = 1/2\n", "device.conf:2: device.shard",
	"unknown key: it belongs in [data NAME]"},
    {"[server]\nlisten = :1\n", "device.conf:1: server",
	"unknown section: it belongs in the coordinator's rivuletd.conf"},
    {"[device]\nlisten = :1\n", "device.conf:2: device.listen",
	"unknown key: it belongs in [server] of the coordinator's rivuletd.conf"},
    {"[coordinator]\nurls = https://a\n", "device.conf:2: coordinator.urls", "unknown key"},
    {"[coordinator]\nurl = ftp://a\n", "device.conf:2: coordinator.url", "https"},
    {"[coordinator]\nurl = https://a:70000\n", "device.conf:2: coordinator.url", "port"},
    {"[coordinator]\nurl = a b c d e f g h i\n", "device.conf:2: coordinator.url", "more than 8"},
    {"[coordinator]\nmodel_mirror = ftp://a\n", "device.conf:2: coordinator.model_mirror", "http"},
    {"[limits]\n\nepochs = 0\n", "device.conf:3: limits.epochs", "from 1 to 1000000"},
    {"[limits]\nepochs = -1\n", "device.conf:2: limits.epochs", "whole number"},
    {"[limits]\nmodel_bytes = 12X\n", "device.conf:2: limits.model_bytes", "size"},
    {"[limits]\nmodel_bytes = 1\n", "device.conf:2: limits.model_bytes",
	"from 1024 to 1000000000000000 bytes"},
    {"[limits]\nseconds_per_round = soon\n", "device.conf:2: limits.seconds_per_round", "number"},
    {"[limits]\nepochs = 1\nepochs = 2\n", "device.conf:3: limits.epochs", "twice"},
    {"[limits]\nepochs =\n", "device.conf:2: limits.epochs", "whole number"},
    {"[device]\nmetrics_file = rivulet.prom\n", "device.conf:2: device.metrics_file",
	"\"rivulet.prom\" is not the absolute path"},
    {"[device]\nmetrics_file = /a/rivulet.txt\n", "device.conf:2: device.metrics_file",
	"\"/a/rivulet.txt\" is not the absolute path"},
    {"[device]\nlog_format = xml\n", "device.conf:2: device.log_format",
	"\"xml\" is not text or json"},
    {"[device]\nthreads = 2000\n", "device.conf:2: device.threads",
	"\"2000\" is not auto or a whole number from 0 to 1024"},
    {"[device]\nthreads = Auto\n", "device.conf:2: device.threads",
	"\"Auto\" is not auto or a whole number from 0 to 1024"},
    {"[device]\nthreads = -1\n", "device.conf:2: device.threads", "not auto or a whole number"},
    {"[device]\nthreads =\n", "device.conf:2: device.threads", "not auto or a whole number"},
    {"[eligibility]\nhours = Mon..Fri 22-06\n", "device.conf:2: eligibility.hours",
	"\"Mon..Fri 22-06\" is not like"},
    {"[eligibility]\nhours =\n", "device.conf:2: eligibility.hours", "is not like"},
    {"[eligibility]\npower = battery\n", "device.conf:2: eligibility.power", "mains"},
    {"[eligibility]\nbattery_min = 101\n", "device.conf:2: eligibility.battery_min", "100"},
    {"[eligibility]\nload_max = 0\n", "device.conf:2: eligibility.load_max", "from 1 to 100"},
    {"[eligibility]\ntemperature_max = 151\n", "device.conf:2: eligibility.temperature_max",
	"from 1 to 150"},
    {"[eligibility]\nupload_per_day = 1\n", "device.conf:2: eligibility.upload_per_day",
	"from 1024"},
    {"[eligibility]\nmetred = pause\n", "device.conf:2: eligibility.metred", "metered"},
    {"[eligibility lab]\npower = any\n", "device.conf:1: eligibility lab", "unknown section"},
    {"[colour]\n", "device.conf:1: colour", "unknown section"},
    {"[colour]\nred = 1\n", "device.conf:1: colour", "unknown section"},
    {"epochs = 1\n", "device.conf:1: epochs", "stands before any [section]"},
    {"[data]\nformat = idx\n", "device.conf:1: data", "unknown section"},
    {"[data a b]\nformat = idx\n", "device.conf:1: data a b", "unknown section"},
    {"[data a]\nformat = png\n", "device.conf:2: data a.format",
	"glyphs, idx, csv, npy, text, packed or external"},
    {"[device]\n[data a]\nhand = 1\n", "device.conf:2: data a.format", "missing"},
    {"[data a]\n", "device.conf:1: data a.format", "missing"},
    {"[data a]\nformat = idx\nimages = /x\n", "device.conf:1: data a.labels", "missing"},
    {"[data a]\nformat = csv\n", "device.conf:1: data a.path", "missing"},
    {"[data a]\nformat = glyphs\npath = /x\n", "device.conf:1: data a.path", "belong"},
    {"[data a]\nformat = glyphs\nskew = 1.5\n", "device.conf:3: data a.skew", "from 0 to 1"},
    {"[data a]\nformat = glyphs\nshard = 0/4\n", "device.conf:3: data a.shard", "from 1 to n"},
    {"[data a]\nformat = glyphs\nshard = 5/4\n", "device.conf:3: data a.shard", "from 1 to n"},
    {"[data a]\nformat = glyphs\nshard = 5\n", "device.conf:3: data a.shard", "1/10"},
    {"[data a]\nformat = glyphs\nshard = 1/x\n", "device.conf:3: data a.shard", "i/n"},
    {"[data a]\nformat = glyphs\nsplit = odd\n", "device.conf:3: data a.split",
	"is not iid or label"},
    {"[data a]\nformat = csv\npath = /x\nkind = regression\npartition = label\n",
	"device.conf:1: data a.partition", "regression"},
    {"[trainer t]\ngrace_s = 3\n", "device.conf:1: trainer t.exec", "missing"},
    {"[trainer t]\nexec = x\nkinds = train guess\n", "device.conf:3: trainer t.kinds",
	"\"guess\" is not train or evaluate"},
    {"[trainer t]\nexec = x\nkinds = ,\n", "device.conf:3: trainer t.kinds", "has no value"},
    {"[trainer t]\nexec = x\npersistent = 1\n", "device.conf:3: trainer t.persistent", ""},
    {"[trainer t]\nexec = x\nidle_exit_s = -1\n", "device.conf:3: trainer t.idle_exit_s", ""},
    {"[limits]\nepochs\n", "device.conf:2:", "key = value"},
};

static void
test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct why why = {""};
		struct settings *s = parse(bad[i].text, &why);
		if (s || !strstr(why.text, bad[i].where) || !strstr(why.text, bad[i].what))
			fail_msg("case %zu: \"%s\" gave \"%s\"", i, bad[i].text,
			    s ? "(accepted)" : why.text);
	}
}

/* What version 402de29 wrote still reads, and says what the key is called now. */
static void
test_split(void **state)
{
	struct why why = {""};

	(void)state;
	struct settings *s = parse("[data a]\nformat = glyphs\nshard = 1/2\nsplit = label\n", &why);
	assert_non_null(s);
	assert_true(s->data[0].shard.partition == SHARD_LABEL);
	assert_int_equal(s->warnings.count, 1);
	assert_string_equal(
	    s->warnings.text[0].text, "device.conf:4: data a.split: is called partition now");
	settings_free(s);
	assert_null(parse("[data a]\nformat = glyphs\nsplit = dirichlet\n", &why));
}

static void
test_partitions(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
	    {"format = csv\npath = /x\npartition = column\ncolumn = user\n", NULL},
	    {"format = csv\npath = /x\npartition = column\n", "needs a column"},
	    {"format = npy\nx = /x\ny = /y\npartition = column\n", "csv and packed only"},
	    {"format = npy\nx = /x\ny = /y\npartition = dirichlet\nalpha = 0.1\n", NULL},
	    {"format = npy\nx = /x\ny = /y\nkind = regression\npartition = dirichlet\n",
		"regression"},
	    {"format = text\npath = /x\npartition = powerlaw\n", "stretch"},
	    {"format = external\npath = /x\n", "examples: is missing"},
	    {"format = csv\npath = /x\nmissing = drop\n", "missing: is skip"},
	    {"format = glyphs\nalpha = 0\n", "alpha"},
	};
	char text[160];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct why why = {""};
		snprintf(text, sizeof(text), "[data a]\n%s", cases[i].text);
		struct settings *s = parse(text, &why);
		if (!s != !!cases[i].says || (cases[i].says && !strstr(why.text, cases[i].says)))
			fail_msg("case %zu gave \"%s\"", i, why.text);
		settings_free(s);
	}
}

/* Addresses, programs and paths of people are longer than a line of the first versions could be. */
static void
test_long_and_zero(void **state)
{
	static const char where[] = "device.conf:2: ";
	static char text[2 * INI_LINE_MAX], exec[800];
	struct settings *s = NULL;
	struct why why = {""};

	(void)state;
	memset(exec, 'x', sizeof(exec) - 1);
	snprintf(text, sizeof(text), "[trainer t]\nexec = /%s\n", exec);
	s = parse(text, &why);
	assert_non_null(s);
	assert_string_equal(s->trainers[0].exec + 1, exec);
	settings_free(s);
	for (int n = 250; n < 800; n += 50) {
		snprintf(text, sizeof(text), "[coordinator]\nurl = a, https://a%.*s\n", n, exec);
		assert_int_equal(
		    settings_parse(&s, "device.conf", text, strlen(text), &why) == ERR_OK, n < 255);
		if (n < 255)
			settings_free(s);
		else
			assert_memory_equal(why.text, where, strlen(where));
	}
	snprintf(text, sizeof(text), "[device]\nthreads = %0*d", INI_LINE_MAX, 0);
	assert_int_equal(settings_parse(&s, "device.conf", text, strlen(text), &why), ERR_INVALID);
	assert_string_equal(why.text, "device.conf:2: the line is longer than 8192 bytes");
	assert_int_equal(settings_parse(&s, "device.conf", "[device]\0\n", 10, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "device.conf:1: the line holds a control character"));
}

static void
test_auto_threads(void **state)
{
	static const char text[] = "[device]\nthreads = auto\n";
	struct settings *s = NULL;
	struct why why;

	(void)state;
	assert_int_equal(settings_parse(&s, "device.conf", text, strlen(text), &why), ERR_OK);
	assert_int_equal(s->threads, 0);
	settings_free(s);
}

static void
test_too_many(void **state)
{
	char text[4096] = "";
	struct settings *s = NULL;
	struct why why;

	(void)state;
	for (int i = 0; i <= SETTINGS_DATA_MAX; i++)
		sprintf(text + strlen(text), "[data d%d]\nformat = glyphs\n", i);
	assert_int_equal(settings_parse(&s, "device.conf", text, strlen(text), &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "device.conf:65: data d32: more than 32 data sets"));
}

static void
test_load(void **state)
{
	char home[] = "/tmp/test_settings.XXXXXX", path[64];
	struct settings *s;
	struct why why = {""};

	(void)state;
	assert_non_null(mkdtemp(home));
	/* The home's own file may be absent; one that was named may not. */
	assert_int_equal(settings_load(&s, home, NULL, &why), ERR_OK);
	assert_string_equal(s->file, "");
	settings_free(s);
	assert_int_equal(settings_load(&s, home, "/nonexistent/x.conf", &why), ERR_NOTFOUND);
	snprintf(path, sizeof(path), "%s/rivulet.conf", home);
	FILE *f = fopen(path, "w");
	fputs("[limits]\nepochs = 7\n", f);
	fclose(f);
	assert_int_equal(settings_load(&s, home, NULL, &why), ERR_OK);
	assert_int_equal(s->epochs, 7);
	assert_string_equal(s->file, path);
	settings_free(s);
	unlink(path);
	rmdir(home);
}

static void
put(const char *home, const char *name, const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", home, name);
	assert_int_equal(file_write(path, text, strlen(text), 0644, NULL), ERR_OK);
}

/* The home's own file, then rivulet.conf.d in the order of names: values replace each other, addresses add up. */
static void
test_load_directory(void **state)
{
	char home[] = "/tmp/test_settings.XXXXXX", parts[64], path[96];
	struct settings *s;
	struct why why = {""};

	(void)state;
	assert_non_null(mkdtemp(home));
	snprintf(parts, sizeof(parts), "%s/rivulet.conf.d", home);
	assert_int_equal(file_mkdirs(parts, 0755, NULL), ERR_OK);
	put(parts, "b.conf", "[limits]\nepochs = 3\n");
	put(parts, "a.conf",
	    "[coordinator]\nurl = two\n[limits]\nepochs = 2\ncache_bytes = 1M\n"
	    "[data d]\nshard = 2/4\nseed = 5\n");
	/* What a package drops there is read without a file of the owner's. */
	put(parts, "c.conf", "[data d]\nformat = glyphs\n");
	assert_int_equal(settings_load(&s, home, NULL, &why), ERR_OK);
	assert_string_equal(s->file, "");
	assert_int_equal(s->epochs, 3);
	settings_free(s);
	put(home, "rivulet.conf", "[coordinator]\nurl = one\n[limits]\nepochs = 1\n");
	assert_int_equal(settings_load(&s, home, NULL, &why), ERR_OK);
	assert_true(s->epochs == 3 && s->model_bytes == 1 << 20);
	assert_int_equal(s->url_count, 2);
	assert_string_equal(s->urls[0], "https://one:7443");
	assert_string_equal(s->urls[1], "https://two:7443");
	assert_true(s->data[0].shard.index == 2 && s->data[0].shard.seed == 5);
	settings_free(s);
	put(parts, "d.conf", "[limits]\nepoch = 3\n");
	assert_int_equal(settings_load(&s, home, NULL, &why), ERR_INVALID);
	assert_non_null(
	    strstr(why.text, "/d.conf:2: limits.epoch: unknown key (did you mean epochs?)"));
	assert_int_equal(file_empty_dir(parts, NULL) || rmdir(parts), 0);
	snprintf(path, sizeof(path), "%s/rivulet.conf", home);
	assert_int_equal(unlink(path) || rmdir(home), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_split),
	    cmocka_unit_test(test_partitions),
	    cmocka_unit_test(test_long_and_zero),
	    cmocka_unit_test(test_auto_threads),
	    cmocka_unit_test(test_too_many),
	    cmocka_unit_test(test_load),
	    cmocka_unit_test(test_load_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
