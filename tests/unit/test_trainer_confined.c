/* stages: gcc openssl address */
/* What a program of the owner may reach, and how much memory it may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "confine.h"
#include "trial.h"
#include <cmocka.h>

#define JOB \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"trainer\":\"ext\"," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"]}," \
	"\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}}," \
	"\"round\":{\"goal\":1}}"
#define REPORT "{\"examples\":40,\"steps\":4,\"loss\":0.5}"
#define LEAVE "cp base.safetensors after.safetensors; echo '" REPORT "' > report.json\n"

static struct why why;

/* Whatever it can reach that it should not is a line of what it says. */
static const char looks_around[] =
    "home=${PWD%/work/*}\n"
    "for f in key.pem outbox/x rivulet.conf; do cat $home/$f && echo \"reads $f\"; done\n"
    "ls $home && echo lists home\n"
    "cat $TRIAL_PLACE/secret && echo reads elsewhere\n"
    "echo x > $TRIAL_PLACE/made && echo writes elsewhere\n"
    "echo x > $home/models && echo writes models\n"
    "echo x > $home/key.pem && echo writes key\n"
    "echo x > /tmp/trial_made && echo writes /tmp\n"
    "[ -z \"$TRIAL_SECRET\" ] || echo has the environment\n"
    "[ \"$TRIAL_GIVEN $TRIAL_SET\" = 'given a b' ] || echo env = is lost\n"
    "kill -0 $TRIAL_AGENT && echo may signal the agent\n"
    "[ \"$HOME\" = $home/trainers/ext ] && [ $XDG_CACHE_HOME = $HOME ] || echo HOME is $HOME\n"
    "echo x > $HOME/kept && echo x > $(mktemp) || echo no cache\n"
    "(umask 077; echo x > /dev/shm/trial_made) && rm /dev/shm/trial_made || echo no /dev/shm\n"
    "head -c 1 /dev/urandom > /dev/null || echo no devices\n"
    "grep -q root /etc/passwd && [ -r /proc/self/stat ] && ls /sys > /dev/null || echo no system\n"
    "[ $(cat /proc/self/oom_score_adj) = 1000 ] || echo not the first to go\n"
    "mkdir deep && echo x > deep/file || echo no directory\n" LEAVE;

static void
put(const struct trial *t, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", t->home, name);
	trial_check(file_write(path, "secret\n", 7, 0600, &why), &why);
}

/* In a home with a key and an outbox; gives what the script said on standard output. */
static const char *
run_at_home(struct trial *t, const char *text, const char *more)
{
	static char said[TRAINER_LOG_MAX + sizeof(why.text)];
	char path[128], config[512], name[] = "/tmp/test_external.XXXXXX";
	int fd = mkstemp(name);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(config, sizeof(config), "[trainer ext]\nexec=sh %s\n%s", name, more);
	trial_init(t, JOB, config);
	snprintf(path, sizeof(path), "%s/outbox", t->home);
	trial_check(file_mkdirs(path, 0700, &why), &why);
	put(t, "key.pem");
	put(t, "rivulet.conf");
	put(t, "outbox/x");
	enum err e = trainer_external_run(&t->in, &t->out, &why);
	snprintf(said, sizeof(said), "%s%s", e ? why.text : "", t->out.log);
	unlink(name);
	return said;
}

static void
leave_home(struct trial *t)
{
	static const char *const names[] = {
	    "key.pem", "rivulet.conf", "outbox/x", "outbox", "models"};
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", t->home, names[i]);
		remove(path);
	}
	trial_deinit(t);
}

/* Lines of the script, without those of the programs that it runs. */
static void
check_said(const char *said, const char *want)
{
	char text[2048], *rest = text;
	char found[2048] = "";

	snprintf(text, sizeof(text), "%s", said);
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		if (!*line || strchr(line, ':') || strcmp(line, "secret") == 0)
			continue;
		strcat(strcat(found, line), "\n");
	}
	if (strcmp(found, want) != 0)
		fail_msg("\"%s\" instead of \"%s\" in: %s", found, want, said);
}

static void
test_confined(void **state)
{
	struct trial t;
	char agent[24], more[256], place[] = "/var/tmp/test_trial.XXXXXX", secret[64];
	static const char env[] = "env = TRIAL_GIVEN TRIAL_AGENT TRIAL_PLACE \"TRIAL_SET=a b\"\n";

	(void)state;
	if (confine_version() < 6) {
		print_message("skipped: wants Landlock 6, the kernel has %d\n", confine_version());
		skip();
	}
	assert_non_null(mkdtemp(place));
	snprintf(secret, sizeof(secret), "%s/secret", place);
	trial_check(file_write(secret, "secret\n", 7, 0600, &why), &why);
	snprintf(agent, sizeof(agent), "%d", (int)getpid());
	setenv("TRIAL_PLACE", place, 1);
	setenv("TRIAL_AGENT", agent, 1);
	setenv("TRIAL_SECRET", "secret", 1);
	setenv("TRIAL_GIVEN", "given", 1);
	check_said(run_at_home(&t, looks_around, env), "");
	leave_home(&t);
	snprintf(more, sizeof(more), "%sread = /none %s\n", env, secret);
	check_said(run_at_home(&t, looks_around, more), "reads elsewhere\n");
	leave_home(&t);
	snprintf(more, sizeof(more), "%swrite = %s\n", env, place);
	check_said(run_at_home(&t, looks_around, more), "reads elsewhere\nwrites elsewhere\n");
	leave_home(&t);
	/* All the directory but the home in it. */
	snprintf(more, sizeof(more), "%sread = /var/tmp /tmp\n", env);
	check_said(run_at_home(&t, looks_around, more), "reads elsewhere\n");
	leave_home(&t);
	snprintf(more, sizeof(more), "%sread = %s\nconfine = no\n", env, place);
	assert_non_null(strstr(run_at_home(&t, looks_around, more), "reads key.pem"));
	leave_home(&t);
	trial_check(file_remove_dir(place, &why), &why);
	unlink("/tmp/trial_made");
}

/* What belongs to the agent is refused by its name. */
static void
test_never_its_own(void **state)
{
	struct trial t;
	char config[200], own[100];
	static const char *const names[] = {"", "/key.pem", "/outbox", "/outbox/x", "/work"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		trial_init(&t, JOB, "[trainer ext]\nexec=sh\n");
		snprintf(own, sizeof(own), "%s/outbox", t.home);
		trial_check(file_mkdirs(own, 0700, &why), &why);
		put(&t, "outbox/x");
		put(&t, "key.pem");
		snprintf(config, sizeof(config), "%s%s", t.home, names[i]);
		strcpy(t.settings->trainers[0].read, config);
		assert_int_equal(trainer_external_run(&t.in, &t.out, &why), ERR_DENIED);
		assert_non_null(strstr(why.text, "is the agent's own"));
		leave_home(&t);
	}
	trial_init(&t, JOB, "[trainer ext]\nexec=sh\nwrite=srv/here\n");
	assert_int_equal(trainer_external_run(&t.in, &t.out, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "does not begin with /"));
	trial_deinit(&t);
}

/* All its processes count, also those that left its process group; one that keeps below the cap is let alone. */
static void
test_memory(void **state)
{
	static const char eats[] = "setsid /usr/bin/python3 -c \"\nimport time\na = b'x' * (%s << "
				   "20)\ntime.sleep(%s)\" & wait\n" LEAVE;
	struct trial t;
	char text[400];

	(void)state;
	snprintf(text, sizeof(text), eats, "150", "60");
	run_at_home(&t, text, "memory_bytes = 100M\n");
	assert_int_equal(t.out.abort, ABORT_OUT_OF_MEMORY);
	assert_non_null(strstr(why.text, "memory_bytes is 100 MiB"));
	leave_home(&t);
	snprintf(text, sizeof(text), eats, "20", "0.5");
	run_at_home(&t, text, "memory_bytes = 100M\n");
	assert_int_equal(t.out.abort, ABORT_NONE);
	leave_home(&t);
}

/* What lies where a report should, or the tensors: it is not followed, not waited for, not read past its limit. */
static void
test_left_in_place(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	    {"ln -s ${PWD%/work/*}/key.pem report.json", "report.json is a link"},
	    {"ln -s /dev/zero report.json", "report.json is a link"},
	    {"mkfifo report.json", "report.json is a link, or no regular file"},
	    {"mkdir report.json", "report.json is a link, or no regular file"},
	    {"echo '" REPORT "' > report.json; ln report.json other",
		"report.json has other names"},
	    {"head -c 1M /dev/zero > report.json", "report.json is larger than 65536 bytes"},
	    {"echo '" REPORT "' > report.json; mkfifo after.safetensors",
		"after.safetensors is a link, or no regular file"},
	    {"echo '" REPORT "' > report.json; ln -s ${PWD%/work/*}/key.pem after.safetensors",
		"after.safetensors is a link"},
	    {"echo '" REPORT "' > report.json; cp base.safetensors after.safetensors; "
	     "ln after.safetensors other",
		"after.safetensors has other names"},
	    {"echo '" REPORT "' > report.json; truncate -s 8T after.safetensors",
		"after.safetensors"},
	};
	struct trial t;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *said = run_at_home(&t, cases[i].text, "");
		if (t.out.abort != ABORT_TRAINER_FAILED || !strstr(said, cases[i].why))
			fail_msg("case %zu: %s", i, said);
		leave_home(&t);
	}
}

/* Trees that are deeper than any path, directories that nobody may enter, links out: nothing stays, and nothing else goes. */
static void
test_left_behind(void **state)
{
	static const char tree[] =
	    "for d in . $TMPDIR; do cd $d; mkdir closed; ln -s $home closed/home; chmod 0 closed\n"
	    "/usr/bin/python3 -c \"\nimport os\nfor i in range(1500):\n    os.mkdir('d')\n"
	    "    os.symlink(os.environ['home'], 'l')\n    os.chdir('d')\n\"\n"
	    "ln -s $home link; done\n";
	struct trial t;
	char text[1024], path[128];

	(void)state;
	snprintf(text, sizeof(text), "export home=${PWD%%/work/*}\n(%s)\n%s", tree, LEAVE);
	const char *said = run_at_home(&t, text, "");
	if (t.out.abort != ABORT_NONE)
		fail_msg("%s", said);
	snprintf(path, sizeof(path), "%s/work", t.home);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/outbox/x", t.home);
	assert_int_equal(access(path, F_OK), 0);
	leave_home(&t);
}

/* While the agent tidies up, a program that stays puts links in the place of directories. */
static void
test_swaps(void **state)
{
	static const char swaps[] =
	    "home=${PWD%/work/*}\n"
	    "echo '{\"ready\": true}' >&4\n"
	    "read line <&3\n"
	    "task=${line##*/}; task=${task%%[!0-9a-f]*}\n"
	    "cd $task || exit 1\n"
	    "/usr/bin/python3 -c \"\nimport os\nos.makedirs('a/b')\n"
	    "for i in range(2000): open('a/b/%d' % i, 'w').close()\n\"\n" LEAVE
	    "(while :; do mv a/b b; ln -s $home/outbox a/b || mkdir a/b; mv b a/c; rm -f a/b; "
	    "done) 2>/dev/null &\n"
	    "echo '{\"done\": \"'$task'\"}' >&4\n"
	    "read line <&3\n";
	struct trial t;
	char path[128];

	(void)state;
	const char *said = run_at_home(&t, swaps, "persistent = yes\nidle_exit_s = 1\n");
	if (t.out.abort != ABORT_NONE)
		fail_msg("%s", said);
	snprintf(path, sizeof(path), "%s/outbox/x", t.home);
	assert_int_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/key.pem", t.home);
	assert_int_equal(access(path, F_OK), 0);
	leave_home(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_confined),
	    cmocka_unit_test(test_never_its_own),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_left_in_place),
	    cmocka_unit_test(test_left_behind),
	    cmocka_unit_test(test_swaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
