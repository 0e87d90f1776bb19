/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>

#include "manifest.h"
#include "own_program.h"

#define JOB_WITH(data) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"trainer\":\"ext\",\"params\":{\"depth\":3}," \
	"\"data\":{\"name\":\"points\"," data "\"shape\":[2],\"classes\":[\"a\",\"b\"]}," \
	"\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}," \
	"\"schedule\":{\"warmup\":4}},\"round\":{\"goal\":1}}"
#define JOB JOB_WITH("")
#define CONFIG \
	"[data " \
	"points]\nformat=csv\npath=/data/points.csv\nshard=2/" \
	"5\nseed=4\n[device]\nthreads=3\n[trainer ext]\nexec=sh "

static char script[64];
static double seconds = 50; /* that a task may take */
static bool (*stop)(void *context);

/* Runs the text as a shell script in the role of the trainer. */
static enum err
run(struct trial *t, const char *text, const char *more)
{
	char config[512];

	strcpy(script, "/tmp/test_external.XXXXXX");
	int fd = mkstemp(script);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(config, sizeof(config), CONFIG "%s 'two words'\n%s", script, more);
	trial_init(t, JOB, config);
	t->in.seconds = seconds;
	t->in.stop = stop;
	enum err e = trainer_external_run(&t->in, &t->out, &why);
	unlink(script);
	return e;
}

static const char reader[] =
    "set -e\n[ \"$1\" = 'two words' ]\n[ \"$2\" = \"$PWD\" ]\n[ $# = 2 ]\n[ "
    "$OMP_NUM_THREADS = 3 ]\n"
    "/usr/bin/python3 - <<'E'\n"
    "import json, struct\n"
    "t = json.load(open('task.json'))\n"
    "assert t['kind'] == 'train' and t['round'] == 1 and t['recipe']['params']['depth'] == "
    "3, t\n"
    "assert t['data'] == {'name': 'points', 'format': 'csv', 'path': '/data/points.csv', "
    "'label': 'last',\n"
    "    'kind': 'class', 'seed': 4}, t['data']\n"
    "assert t['rate'] == 0.025, t['rate']\n"
    "assert t['seconds'] == 50 and 'local' not in t and 'variates' not in t, t\n"
    "import os\n"
    "assert os.environ['RIVULET_TASK'] == os.getcwd()\n"
    "assert os.path.islink('base.safetensors') and os.path.samefile(t['base'], "
    "'base.safetensors')\n"
    "assert os.path.isabs(t['base']) and not os.path.islink(t['base'])\n"
    "assert t['shard'] == {'index': 2, 'count': 5, 'partition': 'iid', 'split': 'iid', 'seed': 4}, "
    "t['shard']\n"
    "def read(path):\n"
    "    b = open(path, 'rb').read()\n"
    "    n = struct.unpack('<Q', b[:8])[0]\n"
    "    return json.loads(b[8:8 + n]), b[8 + n:]\n"
    "h, d = read(t['examples'])\n"
    "assert h['x']['shape'] == [40, 2] and h['x']['dtype'] == 'F32', h\n"
    "assert h['y']['shape'] == [40] and h['validation_x']['shape'] == [10, 2], h\n"
    "b, e = h['y']['data_offsets']\n"
    "assert struct.unpack('<40i', d[b:e]) == (0, 1) * 20\n"
    "h, d = read('base.safetensors')\n"
    "w = h['fc.weight']['data_offsets']\n"
    "u = h['fc.bias']['data_offsets']\n"
    "v = [x + 1 for x in struct.unpack('<4f', d[w[0]:w[1]])]\n"
    "c = [x + 2 for x in struct.unpack('<2f', d[u[0]:u[1]])]\n"
    "# The other order of tensors: they count by name.\n"
    "head = json.dumps({'fc.bias': {'dtype': 'F32', 'shape': [2], 'data_offsets': [0, "
    "8]},\n"
    "    'fc.weight': {'dtype': 'F32', 'shape': [2, 2], 'data_offsets': [8, "
    "24]}}).encode()\n"
    "open('after.safetensors', 'wb').write(struct.pack('<Q', len(head)) + head + "
    "struct.pack('<6f', *c, *v))\n"
    "json.dump({'examples': 40, 'steps': 4, 'loss': 0.5, 'accuracy': 0.75, 'optimizer': 1, "
    "'normaliser': 3.5,\n"
    "    'trained': {'loss_count': 60, 'labels': 80, 'right': 60},\n"
    "    'metrics': {'f1': 0.25}, 'evaluate': {'examples': 10, 'loss': 1.5, 'accuracy': "
    "0.67, 'loss_count': 3, 'labels': 3, 'right': 2}},\n"
    "    open('report.json', 'w'))\n"
    "E\n";

/* The program gets its words, the directory last and as working directory, and everything docs/devices.md promises in it. */
static void
test_good(void **state)
{
	struct trial t;
	float before[6];

	(void)state;
	trial_init(&t, JOB, CONFIG "x\n");
	memcpy(before, t.work.weights, sizeof(before));
	trial_deinit(&t);
	enum err e = run(&t, reader, "");
	if (e)
		fail_msg("%s: %s\n%s", err_name(e), why.text, t.out.log);
	const float *after = (const float *)(const void *)t.work.weights;
	for (size_t i = 0; i < 6; i++)
		assert_true(fabsf(after[i] - before[i] - (i < 4 ? 1.0f : 2.0f)) < 1e-5f);
	assert_int_equal(t.out.finish.examples, 40);
	assert_int_equal(t.out.finish.steps, 4);
	assert_true(t.out.finish.accuracy == 0.75 && t.out.finish.normaliser == 3.5);
	assert_int_equal(t.out.finish.optimizer, MANIFEST_ADAM);
	assert_false(t.out.finish.partial);
	assert_true(t.out.has_report && t.out.report.has_evaluate);
	assert_int_equal(t.out.report.eval_examples, 10);
	assert_string_equal(t.out.report.metrics[0].name, "f1");
	/* What the figures are means of, and what it rounded made exact. */
	assert_true(t.out.report.trained.loss_count == 60 && t.out.report.trained.labels == 80);
	assert_true(t.out.report.eval_accuracy == 2.0 / 3 && t.out.report.evaluated.labels == 3);
	trial_deinit(&t);
}

/* Of data that only the program reads it is told which are for evaluation: as many, and the same in every round. */
static void
test_external_data(void **state)
{
	static const char text[] =
	    "set -e\n/usr/bin/python3 - <<'E'\n"
	    "import json, struct\n"
	    "t = json.load(open('task.json'))\n"
	    "assert 'examples' not in t and t['data']['format'] == 'external', t\n"
	    "b = open(t['validation'], 'rb').read()\n"
	    "n = struct.unpack('<Q', b[:8])[0]\n"
	    "h = json.loads(b[8:8 + n])['indices']\n"
	    "assert h['dtype'] == 'U32' and h['shape'] == [10], h\n"
	    "k = struct.unpack('<10I', b[8 + n:])\n"
	    "assert list(k) == sorted(set(k)) and k[-1] < 50, k\n"
	    "E\ncp base.safetensors after.safetensors; echo '" REPORT "' > report.json\n";
	const struct dataset train = {.count = 40}, held = {.count = 10};
	struct trial t;
	char config[512];

	(void)state;
	strcpy(script, "/tmp/test_external.XXXXXX");
	int fd = mkstemp(script);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(config, sizeof(config),
	    "[data points]\nformat = external\npath = /data/points\nexamples = 50\n[trainer "
	    "ext]\nexec = sh %s\n",
	    script);
	trial_init(&t, JOB_WITH("\"validation\":0.2,"), config);
	t.in.train = &train;
	t.in.validation = &held;
	enum err e = trainer_external_run(&t.in, &t.out, &why);
	if (e)
		fail_msg("%s: %s\n%s", err_name(e), why.text, t.out.log);
	unlink(script);
	trial_deinit(&t);
}

static void
test_defaults_and_partial(void **state)
{
	struct trial t;

	(void)state;
	enum err e =
	    run(&t, "cp base.safetensors after.safetensors; echo '" REPORT "' > report.json", "");
	assert_int_equal(e, ERR_OK);
	assert_int_equal(t.out.finish.optimizer, MANIFEST_EXTERNAL);
	assert_true(isnan(t.out.finish.accuracy));
	assert_true(t.out.finish.normaliser == 4.0);
	assert_false(t.out.has_report);
	assert_false(t.out.finish.partial);
	trial_deinit(&t);
}

static bool
stop_now(void *context)
{
	(void)context;
	return true;
}

/* A program that dies of being asked: the reason says who asked. */
static void
test_asked(void **state)
{
	static const struct {
		bool (*stop)(void *context);
		enum abort_reason abort;
	} cases[] = {{stop_now, ABORT_STOPPED}, {NULL, ABORT_DEADLINE}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct trial t;
		seconds = 0.3;
		stop = cases[i].stop;
		assert_int_equal(run(&t, "exec sleep 600", ""), ERR_INVALID);
		assert_non_null(strstr(why.text, "was ended by signal 15"));
		assert_int_equal(t.out.abort, cases[i].abort);
		trial_deinit(&t);
	}
	seconds = 50;
	stop = NULL;
}

/* Asked to finish by the deadline, it saves what it has: partial work, whatever its report says. */
static void
test_deadline(void **state)
{
	struct trial t;
	char config[256];

	(void)state;
	strcpy(script, "/tmp/test_external.XXXXXX");
	int fd = mkstemp(script);
	static const char text[] =
	    "trap 'cp base.safetensors after.safetensors; echo "
	    "\"{\\\"examples\\\":40,\\\"steps\\\":4,"
	    "\\\"loss\\\":0.5}\" > report.json; exit 0' TERM\nwhile :; do sleep 0.05; done\n";
	assert_int_equal(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	snprintf(config, sizeof(config), CONFIG "%s\n", script);
	trial_init(&t, JOB, config);
	t.in.seconds = 0.3;
	assert_int_equal(trainer_external_run(&t.in, &t.out, &why), ERR_OK);
	assert_true(t.out.finish.partial);
	unlink(script);
	trial_deinit(&t);
}

#define SAFE(text) "printf '%b' '" text "' > after.safetensors; echo '" REPORT "' > report.json"

/* Everything a trainer can get wrong: a reason word, a sentence, and its last words for the coordinator. */
static void
test_bad(void **state)
{
	static const struct {
		const char *script;
		enum abort_reason abort;
		const char *why;
	} cases[] = {
	    {"echo boom >&2; exit 7", ABORT_TRAINER_FAILED, "exited with 7"},
	    {"kill -9 $$", ABORT_TRAINER_FAILED, "signal 9"},
	    {"cp base.safetensors after.safetensors", ABORT_TRAINER_FAILED, "report.json"},
	    {"echo '" REPORT "' > report.json", ABORT_TRAINER_FAILED, "no after.safetensors"},
	    {"cp base.safetensors after.safetensors; echo '{}' > report.json", ABORT_TRAINER_FAILED,
		"examples and steps"},
	    {"cp base.safetensors after.safetensors; echo "
	     "'{\"examples\":1,\"steps\":0,\"loss\":1}' > report.json",
		ABORT_TRAINER_FAILED, "examples and steps"},
	    {"cp base.safetensors after.safetensors; echo nonsense > report.json",
		ABORT_TRAINER_FAILED, ""},
	    {"cp base.safetensors after.safetensors; head -c 100000 /dev/zero > report.json",
		ABORT_TRAINER_FAILED, "larger"},
	    {"cp base.safetensors after.safetensors; echo "
	     "'{\"NaN\":\"Infinity\",\"examples\":1,\"steps\":1,\"loss\":NaN}' > report.json",
		ABORT_NOT_FINITE, "\"loss\" is not finite"},
	    {"cp base.safetensors after.safetensors; echo "
	     "'{\"examples\":1,\"steps\":1,\"loss\":1e999}' > report.json",
		ABORT_NOT_FINITE, "\"loss\" is not finite"},
	    {"cp base.safetensors after.safetensors; echo "
	     "'{\"examples\":1,\"steps\":1,\"loss\":1,\"metrics\":{\"f\\\\\": 1\":-inf}}' > "
	     "report.json",
		ABORT_NOT_FINITE, "is not finite"},
	    {"cp base.safetensors after.safetensors; echo "
	     "'{\"metrics\":{\"f1\": -Infinity}}' > report.json",
		ABORT_NOT_FINITE, "\"f1\" is not finite"},
	    {SAFE("short"), ABORT_TRAINER_FAILED, "too short"},
	    {SAFE("\\0377\\0377\\0377\\0377\\0377\\0377\\0377\\0377"), ABORT_TRAINER_FAILED, ""},
	    {SAFE("\\0002\\0000\\0000\\0000\\0000\\0000\\0000\\0000{}"), ABORT_TRAINER_FAILED,
		"fc.weight"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trial t;
		why.text[0] = '\0';
		enum err e = run(&t, cases[i].script, "");
		if (!e || t.out.abort != cases[i].abort || !strstr(why.text, cases[i].why))
			fail_msg("case %zu: %s, %s, \"%s\"", i, err_name(e),
			    abort_reason_name(t.out.abort), why.text);
		if (i == 0)
			assert_string_equal(t.out.log, "boom\n");
		trial_deinit(&t);
	}
}

/* The program gives the task back, in words of its own. */
static void
test_abort(void **state)
{
	static const struct {
		const char *report, *word, *why;
		enum abort_reason abort;
	} cases[] = {
	    {"{\"abort\": {\"reason\": \"gpu-lost\", \"text\": \"it fell off the bus\"}}",
		"gpu-lost", "it fell off the bus", ABORT_UNKNOWN},
	    {"{\"abort\": {\"reason\": \"abcdefghijklmnopqrstuvwxyzabcdef\"}}",
		"abcdefghijklmnopqrstuvwxyzabcdef", "abcdef", ABORT_UNKNOWN},
	    {"{\"abort\": {\"reason\": \"no-data\"}}", "no-data", "no-data", ABORT_NO_DATA},
	    {"{\"abort\": {\"reason\": \"abcdefghijklmnopqrstuvwxyzabcdefg\"}}", "",
		"abort.reason is no word", ABORT_TRAINER_FAILED},
	    {"{\"abort\": {\"reason\": \"Gpu\"}}", "", "abort.reason is no word",
		ABORT_TRAINER_FAILED},
	    {"{\"abort\": {\"reason\": \"\"}}", "", "abort.reason is no word",
		ABORT_TRAINER_FAILED},
	    {"{\"abort\": true}", "", "abort.reason is no word", ABORT_TRAINER_FAILED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trial t;
		char text[256];
		snprintf(text, sizeof(text), "echo '%s' > report.json", cases[i].report);
		enum err e = run(&t, text, "");
		if (!e || t.out.abort != cases[i].abort || strcmp(t.out.word, cases[i].word) != 0 ||
		    !strstr(why.text, cases[i].why))
			fail_msg("case %zu: %s, %s, \"%s\", \"%s\"", i, err_name(e),
			    abort_reason_name(t.out.abort), t.out.word, why.text);
		trial_deinit(&t);
	}
}

/* Why it gives the task back is the end of its log, and the end of that is kept. */
static void
test_abort_text(void **state)
{
	struct trial t;

	(void)state;
	enum err e = run(&t,
	    "printf said; cat > report.json <<'E'\n"
	    "{\"abort\": {\"reason\": \"gone\", \"text\": \"Traceback\\nKeyError: 1\"}}\nE\n",
	    "");
	assert_int_equal(e, ERR_DENIED);
	assert_string_equal(t.out.log, "said\nTraceback\nKeyError: 1");
	trial_deinit(&t);
	e = run(&t,
	    "head -c 3000 /dev/zero | tr '\\0' o; x=$(head -c 3000 /dev/zero | tr '\\0' x)\n"
	    "echo '{\"abort\":{\"reason\":\"gone\",\"text\":\"'$x' the end\"}}' > report.json",
	    "");
	assert_int_equal(e, ERR_DENIED);
	assert_string_equal(t.out.log + sizeof(t.out.log) - 10, "x the end");
	trial_deinit(&t);
}

/* One tensor a file. */
static const char in_parts[] =
    "/usr/bin/python3 - <<'E'\n"
    "import json, struct\n"
    "def put(path, name, shape, *values):\n"
    "    head = json.dumps({name: {'dtype': 'F32', 'shape': shape, 'data_offsets': [0, 4 * "
    "len(values)]}}).encode()\n"
    "    open(path, 'wb').write(struct.pack('<Q', len(head)) + head + struct.pack('<%df' % "
    "len(values), *values))\n"
    "put('a.safetensors', 'fc.bias', [2], 5, 6)\n"
    "put('b.safetensors', 'fc.weight', [2, 2], 1, 2, 3, 4)\n"
    "E\n";

static void
test_after_in_parts(void **state)
{
	static const struct {
		const char *more, *after, *why;
	} cases[] = {
	    {"", "[\"a.safetensors\", \"b.safetensors\"]", NULL},
	    {"", "[\"a.safetensors\"]", "a.safetensors has no tensor \"fc.weight\""},
	    {"cp a.safetensors c", "[\"a.safetensors\", \"b.safetensors\", \"c\"]",
		"both a.safetensors and c have a tensor \"fc.bias\""},
	    {"", "[\"a.safetensors\", \"none\"]", "left no none"},
	    {"ln -s b.safetensors c", "[\"a.safetensors\", \"c\"]", "c is a link"},
	    {"mkfifo c", "[\"a.safetensors\", \"c\"]", "no regular file"},
	    {"", "[\"a.safetensors\", \"../b.safetensors\"]", "after is no list"},
	    {"", "[\"a.safetensors\", \"..\"]", "after is no list"},
	    {"", "[\"a.safetensors\", \"\"]", "after is no list"},
	    {"", "[\"a.safetensors\", 7]", "after is no list"},
	    {"", "[]", "after is no list"},
	    {"", "\"a.safetensors\"", "after is no list"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct trial t;
		char text[1200];
		snprintf(text, sizeof(text),
		    "%s%s\necho '{\"examples\":40,\"steps\":4,\"loss\":0.5,\"after\":%s}' > "
		    "report.json",
		    in_parts, cases[i].more, cases[i].after);
		enum err e = run(&t, text, "");
		if (cases[i].why ? !e || !strstr(why.text, cases[i].why) : e != ERR_OK)
			fail_msg("case %zu: %s, \"%s\"", i, err_name(e), why.text);
		const float *after = (const float *)(const void *)t.work.weights;
		for (size_t k = 0; !e && k < 6; k++)
			assert_true(fabsf(after[k] - (float)(k + 1)) < 1e-6f);
		trial_deinit(&t);
	}
}

/* What the agent reads it follows nowhere. */
static void
test_no_link_out(void **state)
{
	struct trial t;

	(void)state;
	assert_int_equal(
	    run(&t, "ln -s base.safetensors after.safetensors; echo '" REPORT "' > report.json",
		""),
	    ERR_INVALID);
	assert_non_null(strstr(why.text, "after.safetensors is a link"));
	trial_deinit(&t);
}

/* Local tensors as they are on this device, and the correction of control variates, zeros in the first round. */
static void
test_own_tensors(void **state)
{
	struct trial t;
	float shift[] = {1, 2, 3, 4, 5, 6};

	(void)state;
	trial_init(&t, EXT_JOB, own(""));
	for (size_t i = 0; i < t.work.table.count; i++)
		if (t.work.table.items[i].role == TENSOR_LOCAL)
			memcpy(t.work.weights + t.work.table.items[i].begin, (float[]){8, 9}, 8);
	assert_int_equal(
	    run_at(&t,
		LOOK("assert read(t['local']) == {'fc.bias': [8, 9]}\n"
		     "assert 'variates' not in t\n") "cp base.safetensors after.safetensors; echo "
						     "'" REPORT "' > report.json"),
	    ERR_OK);
	trial_deinit(&t);
	trial_init(&t, JOB, own(""));
	t.work.task.recipe.local.variates = 1;
	assert_int_equal(
	    run_at(&t,
		LOOK("assert read(t['variates']) == {'fc.weight': [0] * 4, 'fc.bias': "
		     "[0, 0]}\n") "cp base.safetensors after.safetensors; echo '" REPORT
				  "' > report.json"),
	    ERR_OK);
	t.work.server.memory = shift;
	assert_int_equal(
	    run_at(&t,
		LOOK(
		    "assert read(t['variates']) == {'fc.weight': [1, 2, 3, 4], 'fc.bias': [5, 6]}\n"
		    "assert 'local' not in t\n") "cp base.safetensors after.safetensors; echo "
						 "'" REPORT "' > report.json"),
	    ERR_OK);
	trial_deinit(&t);
}

static struct stat
only_examples(const struct trial *t, char path[PATH_MAX])
{
	char dir[128];
	struct dirent *ent;
	struct stat st = {.st_size = 0};
	unsigned n = 0;

	snprintf(dir, sizeof(dir), "%s/examples", t->home);
	DIR *d = opendir(dir);
	assert_non_null(d);
	while ((ent = readdir(d)))
		if (ent->d_name[0] != '.') {
			snprintf(path, PATH_MAX, "%s/%s", dir, ent->d_name);
			n++;
		}
	closedir(d);
	assert_int_equal(n, 1);
	assert_int_equal(stat(path, &st), 0);
	return st;
}

#define COPY "cp base.safetensors after.safetensors; echo '" REPORT "' > report.json"

/* Written once, for as long as they are the same; not kept where they are too large. */
static void
test_examples_once(void **state)
{
	struct trial t;
	char path[PATH_MAX], id[65] = "";

	(void)state;
	trial_init(&t, JOB, own(""));
	t.in.examples_id = id;
	assert_int_equal(run_at(&t, COPY), ERR_OK);
	struct stat first = only_examples(&t, path);
	assert_int_equal(first.st_mode & 07777, 0400);
	assert_non_null(strstr(path, id));
	assert_int_equal(strlen(id), 64);
	assert_int_equal(run_at(&t, COPY), ERR_OK);
	t.in.examples_id = NULL;
	assert_int_equal(run_at(&t, COPY), ERR_OK);
	struct stat again = only_examples(&t, path);
	assert_true(first.st_ino == again.st_ino && first.st_size == again.st_size);
	/* There is room for one: another set puts the first one out. */
	t.settings->examples_bytes = (uint64_t)first.st_size + 100;
	t.train.floats[0] += 1;
	assert_int_equal(run_at(&t, COPY), ERR_OK);
	assert_null(strstr((only_examples(&t, path), path), id));
	t.settings->examples_bytes = 100;
	assert_int_equal(
	    run_at(&t, "grep -q . $(dirname \"$PWD.given/x\")/examples.safetensors && " COPY),
	    ERR_OK);
	trial_deinit(&t);
}

/* One that is not confined can: it is found out, and the agent's file goes. */
static void
test_changed(void **state)
{
	static const char *const names[] = {"base", "examples"};
	struct trial t;
	char text[256], path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		trial_init(&t, JOB, own("confine=no"));
		snprintf(text, sizeof(text),
		    COPY "; chmod u+w %s.safetensors; echo x >> %s.safetensors", names[i],
		    names[i]);
		assert_int_equal(run_at(&t, text), ERR_CORRUPT);
		assert_int_equal(t.out.abort, ABORT_TRAINER_FAILED);
		assert_non_null(strstr(why.text, names[i]));
		snprintf(path, sizeof(path), "%s/examples", t.home);
		assert_int_equal(i == 0 ? access(t.path, F_OK) : rmdir(path), i == 0 ? -1 : 0);
		trial_deinit(&t);
	}
}

static void
test_wrong_shape(void **state)
{
	struct trial t;

	(void)state;
	enum err e = run(&t,
	    "/usr/bin/python3 - <<'E'\n"
	    "import json, struct\n"
	    "head = json.dumps({'fc.weight': {'dtype': 'F32', 'shape': [4], 'data_offsets': [0, "
	    "16]},\n"
	    "    'fc.bias': {'dtype': 'F32', 'shape': [2], 'data_offsets': [16, 24]}}).encode()\n"
	    "open('after.safetensors', 'wb').write(struct.pack('<Q', len(head)) + head + "
	    "bytes(24))\n"
	    "E\necho '" REPORT "' > report.json\n",
	    "");
	assert_int_equal(e, ERR_INVALID);
	assert_non_null(strstr(why.text, "another type or shape"));
	trial_deinit(&t);
}

static void
test_no_program(void **state)
{
	struct trial t;

	(void)state;
	trial_init(&t, JOB, "[trainer ext]\nexec=/nonexistent/trainer\n");
	assert_int_equal(trainer_external_run(&t.in, &t.out, &why), ERR_NOTFOUND);
	assert_int_equal(t.out.abort, ABORT_TRAINER_FAILED);
	t.settings->trainer_count = 0;
	assert_int_equal(trainer_external_run(&t.in, &t.out, &why), ERR_NOTFOUND);
	assert_int_equal(t.out.abort, ABORT_NO_TRAINER);
	trial_deinit(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_external_data),
	    cmocka_unit_test(test_defaults_and_partial),
	    cmocka_unit_test(test_deadline),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_asked),
	    cmocka_unit_test(test_abort),
	    cmocka_unit_test(test_abort_text),
	    cmocka_unit_test(test_after_in_parts),
	    cmocka_unit_test(test_no_link_out),

	    cmocka_unit_test(test_own_tensors),
	    cmocka_unit_test(test_examples_once),
	    cmocka_unit_test(test_changed),
	    cmocka_unit_test(test_wrong_shape),
	    cmocka_unit_test(test_no_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
