/* stages: gcc clang openssl address */
/* Programs that stay from task to task, as shell scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "backoff.h"
#include "companions.h"
#include "confine.h"
#include "trial.h"

#define JOB \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"trainer\":\"ext\"," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"]}," \
	"\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}}," \
	"\"round\":{\"goal\":1}}"
#define REPORT "{\\\"examples\\\":40,\\\"steps\\\":4,\\\"loss\\\":0.5}"
/* Each start is a line of a file in its cache. */
#define BEGIN "say() { echo \"$1\" >&$RIVULET_TRAINER_OUT; }\necho x >> $HOME/starts\n"
#define READY "say '{\"ready\":true,\"more\":[1]}'\n"
#define EACH \
	"leave() { cp base.safetensors after.safetensors; echo \"" REPORT "\" > report.json; }\n" \
	"while IFS= read -r line <&$RIVULET_TRAINER_IN; do\n" \
	"case $line in *'\"finish\"'*) continue;; esac\n" \
	"id=${line#*'\"task\":\"'}; id=${id%%'\"'*}\n" \
	"dir=${line#*'\"directory\":\"'}; cd \"${dir%%'\"'*}\"\n"
#define DONE "leave\nsay \"{\\\"done\\\": \\\"$id\\\"}\"\ndone\n"
#define GOOD BEGIN READY EACH DONE

static struct trial t;
static struct companions all;
static char script[64];
static struct why why;

static void
set_up(const char *text, const char *more)
{
	char config[512];

	strcpy(script, "/tmp/test_companion.XXXXXX");
	int fd = mkstemp(script);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(
	    config, sizeof(config), "[trainer ext]\nexec=sh %s\npersistent=yes\n%s", script, more);
	trial_init(&t, JOB, config);
	companions_init(&all, &(struct companion_place){.settings = t.settings, .home = t.home});
	t.in.companions = &all;
	why.text[0] = '\0';
}

static void
tear_down(void)
{
	companions_deinit(&all);
	unlink(script);
	trial_deinit(&t);
}

static enum err
run(void)
{
	return trainer_external_run(&t.in, &t.out, &why);
}

static void
run_well(void)
{
	enum err e = run();

	if (e)
		fail_msg("%s: %s\n%s", err_name(e), why.text, t.out.log);
	assert_int_equal(t.out.finish.examples, 40);
}

/* How often it was started. */
static size_t
starts(void)
{
	char path[128], *text = NULL;
	size_t len = 0;

	snprintf(path, sizeof(path), "%s/trainers/ext/starts", t.home);
	assert_int_equal(file_read(path, 1 << 20, &text, &len, NULL), ERR_OK);
	free(text);
	return len / 2;
}

static void
test_stays(void **state)
{
	(void)state;
	set_up(GOOD, "");
	for (int i = 0; i < 5; i++) {
		run_well();
		assert_false(t.out.finish.partial);
	}
	assert_int_equal(starts(), 1);
	/* Another job's tasks are not its own. */
	memset(t.work.task.job, '4', 32);
	run_well();
	run_well();
	assert_int_equal(starts(), 2);
	tear_down();
	set_up(GOOD, "share_jobs = yes\n");
	run_well();
	memset(t.work.task.job, '4', 32);
	run_well();
	assert_int_equal(starts(), 1);
	/* Whose data are not what it was given. */
	t.in.data = &t.settings->data[0];
	run_well();
	assert_int_equal(starts(), 2);
	tear_down();
}

/* A program that was edited is not run on as it was. */
static void
test_edited(void **state)
{
	(void)state;
	set_up(GOOD, "");
	run_well();
	assert_int_equal(unlink(script), 0); /* as while an editor replaces it */
	run_well();
	assert_int_equal(starts(), 1);
	int fd = open(script, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, GOOD, sizeof(GOOD) - 1), (ssize_t)sizeof(GOOD) - 1);
	close(fd);
	run_well();
	assert_int_equal(starts(), 2);
	const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
	assert_int_equal(utimensat(AT_FDCWD, script, times, 0), 0);
	run_well();
	run_well();
	assert_int_equal(starts(), 3);
	tear_down();
}

/* Nobody keeps it beyond its task. */
static void
test_alone(void **state)
{
	(void)state;
	set_up(GOOD, "");
	t.in.companions = NULL;
	run_well();
	run_well();
	assert_int_equal(starts(), 2);
	tear_down();
}

/* Output, as much as it likes, and where it closes it, too; children that outlive it. */
static void
test_noise(void **state)
{
	(void)state;
	set_up(BEGIN "sleep 1000 &\n" READY EACH
		     "head -c 3000000 /dev/zero | tr '\\0' x\nprintf '\\r 50%%|#####     |' >&2\n"
		     "exec >&-\n" DONE,
	    "");
	run_well();
	assert_non_null(strstr(t.out.log, "50%|##"));
	run_well();
	assert_int_equal(starts(), 1);
	tear_down();
}

/* Every way to get it wrong: the task is given back with a sentence, the program goes, and the next one starts anew. */
static void
test_wrong(void **state)
{
	static const struct {
		const char *script;
		enum abort_reason abort;
		const char *why;
	} cases[] = {
	    {BEGIN READY EACH "echo boom; kill -9 $$\n" DONE, ABORT_TRAINER_FAILED, "signal 9"},
	    {BEGIN READY EACH "exit 3\n" DONE, ABORT_TRAINER_FAILED, "exited with 3"},
	    {BEGIN "exit 4\n", ABORT_TRAINER_FAILED, "exited with 4"},
	    {BEGIN "say hello\nsleep 1000\n", ABORT_TRAINER_FAILED, "wrote a line that"},
	    {BEGIN "say '[1]'\nsleep 1000\n", ABORT_TRAINER_FAILED, "is no object"},
	    {BEGIN "say '{\"ready\":1}'\nsleep 1000\n", ABORT_TRAINER_FAILED, "\"ready\" is"},
	    {BEGIN "say '{\"done\":\"x\"}'\nsleep 1000\n", ABORT_TRAINER_FAILED,
		"a task that it does not have"},
	    {BEGIN READY EACH "say '{\"done\": 7}'\n" DONE, ABORT_TRAINER_FAILED, "names no task"},
	    {BEGIN READY EACH "say '{\"done\":\"'${id}0'\"}'\n" DONE, ABORT_TRAINER_FAILED,
		"a task that it does not have"},
	    {BEGIN READY EACH
		"head -c 70000 /dev/zero | tr '\\0' ' ' >&$RIVULET_TRAINER_OUT; sleep 1000\n" DONE,
		ABORT_TRAINER_FAILED, "more than 65536 bytes"},
	    {BEGIN READY EACH "exec 4>&-; sleep 1000\n" DONE, ABORT_TRAINER_FAILED,
		"closed RIVULET_TRAINER_OUT"},
	    {BEGIN READY EACH "say \"{\\\"done\\\": \\\"$id\\\"}\"; done\n", ABORT_TRAINER_FAILED,
		"report.json"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up(cases[i].script, "");
		enum err e = run();
		if (!e || t.out.abort != cases[i].abort || !strstr(why.text, cases[i].why))
			fail_msg("case %zu: %s, %s, \"%s\"", i, err_name(e),
			    abort_reason_name(t.out.abort), why.text);
		if (i == 0)
			assert_string_equal(t.out.log, "boom\n");
		tear_down();
	}
}

/* While it waits for a task. */
static void
kill_it(void)
{
	spawner_signal(&all.items[0]->spawner, SIGKILL);
	while (all.items[0]->lifecycle.state != LIFECYCLE_ABSENT)
		companions_tend(&all);
}

/* After a crash the next task finds a new one, which has nothing of the old. */
static void
test_again(void **state)
{
	(void)state;
	set_up(BEGIN READY EACH "[ -e $HOME/once ] || { > $HOME/once; kill -9 $$; }\n" DONE, "");
	assert_int_equal(run(), ERR_INVALID);
	run_well();
	run_well();
	assert_int_equal(starts(), 2);
	/* A task is not kept waiting for longer than it has. */
	companions_deinit(&all);
	companions_init(&all, &(struct companion_place){.settings = t.settings, .home = t.home});
	run_well();
	kill_it();
	all.items[0]->not_before = backoff_now() + 100;
	t.in.seconds = 50;
	assert_int_equal(run(), ERR_TIMEOUT);
	assert_int_equal(t.out.abort, ABORT_TRAINER_FAILED);
	assert_non_null(strstr(why.text, "pauses for"));
	tear_down();
}

/* It learns of the deadline, saves what it has, and stays. */
static void
test_finish(void **state)
{
	(void)state;
	set_up(BEGIN READY EACH "read -r line <&$RIVULET_TRAINER_IN; [ \"$line\" = "
				"\"{\\\"finish\\\":\\\"$id\\\"}\" ] || "
				"exit 9\n" DONE,
	    "");
	t.in.seconds = 0.2;
	run_well();
	assert_true(t.out.finish.partial);
	run_well();
	assert_int_equal(starts(), 1);
	tear_down();
}

/* It does not. What it started goes with it. */
static void
test_hangs(void **state)
{
	static const struct {
		const char *script, *why;
	} cases[] = {
	    {BEGIN READY "trap '' TERM\nsleep 1000 & echo $! > $HOME/child\nwait\n",
		"did not finish when asked"},
	    {BEGIN READY EACH "trap '' TERM\nsleep 1000 & echo $! > $HOME/child\nwait\n" DONE,
		"did not finish when asked"},
	    {BEGIN "sleep 1000 & echo $! > $HOME/child\nwait\n", "was not ready in time"},
	};
	char path[128], *text = NULL;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up(cases[i].script, "grace_s = 0.1\n");
		t.in.seconds = 0.5;
		assert_int_equal(run(), ERR_TIMEOUT);
		assert_int_equal(t.out.abort, ABORT_DEADLINE);
		assert_non_null(strstr(why.text, cases[i].why));
		companions_deinit(&all);
		snprintf(path, sizeof(path), "%s/trainers/ext/child", t.home);
		assert_int_equal(file_read(path, 100, &text, &len, NULL), ERR_OK);
		assert_int_equal(kill((pid_t)atoi(text), 0), -1);
		free(text);
		tear_down();
	}
}

/* What loads longer than a task can wait is there for a later one. */
static void
test_late(void **state)
{
	(void)state;
	set_up(BEGIN "sleep 1\n" READY EACH DONE, "");
	t.in.seconds = 0.2;
	assert_int_equal(run(), ERR_TIMEOUT);
	assert_int_equal(t.out.abort, ABORT_DEADLINE);
	assert_non_null(strstr(why.text, "not ready in time"));
	t.in.seconds = 60;
	run_well();
	assert_int_equal(starts(), 1);
	tear_down();
}

/* Once it works. */
static bool
stop_now(void *context)
{
	char path[128];

	(void)context;
	snprintf(path, sizeof(path), "%s/trainers/ext/working", t.home);
	return access(path, F_OK) == 0;
}

/* The agent ends: SIGTERM, and it saves what it has and leaves. */
static void
test_stop(void **state)
{
	(void)state;
	set_up(BEGIN "leave() { cp base.safetensors after.safetensors; echo \"" REPORT
		     "\" > report.json; }\n"
		     "trap 'leave; say \"{\\\"done\\\": \\\"$id\\\"}\"; exit 0' TERM\n" READY EACH
		     "> $HOME/working; while :; do sleep 0.02; done\n" DONE,
	    "");
	t.in.stop = stop_now;
	run_well();
	assert_true(t.out.finish.partial);
	tear_down();
	/* While it is being started. */
	set_up(BEGIN "> $HOME/working; sleep 1000\n", "");
	t.in.stop = stop_now;
	assert_int_equal(run(), ERR_AGAIN);
	assert_int_equal(t.out.abort, ABORT_STOPPED);
	tear_down();
}

static void
test_idle(void **state)
{
	(void)state;
	set_up(GOOD "echo left > $HOME/left\n", "idle_exit_s = 0.05\n");
	run_well();
	char path[128];
	snprintf(path, sizeof(path), "%s/trainers/ext/left", t.home);
	while (access(path, F_OK) != 0) {
		companions_tend(&all);
		usleep(10000);
	}
	run_well();
	assert_int_equal(starts(), 2);
	tear_down();
}

/* A task that cannot be prepared does not keep it from leaving, whether it was ready for that or still loading. */
static void
test_idle_unprepared(void **state)
{
	static const char *const scripts[] = {
	    GOOD "> $HOME/left\n", BEGIN "sleep 0.3\n" READY EACH DONE "> $HOME/left\n"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		set_up(scripts[i], "idle_exit_s = 0.05\n");
		if (i == 0)
			run_well();
		strcpy(t.work.path, "/nonexistent/model");
		assert_int_not_equal(run(), ERR_OK);
		snprintf(path, sizeof(path), "%s/trainers/ext/left", t.home);
		for (double until = backoff_now() + 60; access(path, F_OK) != 0; usleep(10000)) {
			companions_tend(&all);
			assert_true(backoff_now() < until);
		}
		tear_down();
	}
}

/* For its whole life. */
static void
test_memory(void **state)
{
	(void)state;
	set_up(BEGIN READY EACH
	    "/usr/bin/python3 -c \"x = b'x' * (200 << 20); import time; time.sleep(60)\"\n" DONE,
	    "memory_bytes = 64M\n");
	assert_int_equal(run(), ERR_NOMEM);
	assert_int_equal(t.out.abort, ABORT_OUT_OF_MEMORY);
	assert_non_null(strstr(why.text, "memory_bytes is 64 MiB"));
	tear_down();
}

static void
test_not_there(void **state)
{
	(void)state;
	set_up(GOOD, "");
	strcpy(t.settings->trainers[0].exec, "/nonexistent/trainer");
	assert_int_equal(run(), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, "cannot be started"));
	tear_down();
}

/* It was started before its task existed: it may change the task's directory, and only read what the agent gives. */
static void
test_confined(void **state)
{
	(void)state;
	if (confine_version() < 3) {
		print_message("skipped: wants Landlock 3, the kernel has %d\n", confine_version());
		skip();
	}
	set_up(BEGIN READY EACH
	    "home=${PWD%/work/*}\n"
	    "ls $home >/dev/null && echo lists home\ncat $home/model.safetensors >/dev/null && "
	    "echo reads a "
	    "model\n"
	    "base=$(sed -n 's/.*\"base\":[^\"]*\"\\([^\"]*\\)\".*/\\1/p' task.json)\n"
	    "cmp -s \"$base\" base.safetensors || echo no base\n"
	    "echo x >> \"$base\" && echo writes the base\n"
	    "rm -f \"$base\" && [ ! -e \"$base\" ] && echo removes the base\n"
	    "ln \"$base\" mine && echo links the base\n"
	    "mv \"$base\" mine && echo takes the base\n"
	    "head -c 8 \"${base%/*}/examples.safetensors\" >/dev/null || echo no examples\n"
	    "mkdir deep && echo x > deep/file || echo no directory\n" DONE,
	    "");
	run_well();
	char text[2048], *rest = text;
	snprintf(text, sizeof(text), "%s", t.out.log);
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		if (*line && !strchr(line, ':'))
			fail_msg("it %s: %s", line, t.out.log);
	tear_down();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stays),
	    cmocka_unit_test(test_edited),
	    cmocka_unit_test(test_alone),
	    cmocka_unit_test(test_noise),
	    cmocka_unit_test(test_wrong),
	    cmocka_unit_test(test_again),
	    cmocka_unit_test(test_finish),
	    cmocka_unit_test(test_hangs),
	    cmocka_unit_test(test_late),
	    cmocka_unit_test(test_stop),
	    cmocka_unit_test(test_idle),
	    cmocka_unit_test(test_idle_unprepared),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_not_there),
	    cmocka_unit_test(test_confined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
