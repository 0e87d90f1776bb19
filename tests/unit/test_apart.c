/* stages: gcc openssl address */
/* The superuser alone can give rights away: without, most is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "another_user.h"
#include "apart.c"
#include "child.h"
#include "file.h"
#include "spawner_pool.h"

#define NEED(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)

static char top[64]; /* of a test: the superuser's, with a place in it */

static void
test_names(void **state)
{
	char name[APART_NAME_MAX] = "trainer-1.tasks";

	(void)state;
	assert_true(is_name(name));
	memset(name, 'x', sizeof(name) - 1);
	assert_true(is_name(name));
	name[sizeof(name) - 1] = 'x'; /* no end */
	assert_false(is_name(name));
	static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "/", "a/"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(name, sizeof(name), "%s", bad[i]);
		assert_false(is_name(name));
	}
}

/* Nothing is sent: there is nobody. */
static void
test_paths(void **state)
{
	const struct apart a = {.place = "/srv/place", .fd = -1, .pool = -1};
	static const char *const bad[] = {"/srv/place", "/srv/place/work", "/srv/place/work/",
	    "/srv/place/trainers/x", "/srv/places/work/x", "/srv/place/work/x/", "/etc", ""};
	char path[PATH_MAX] = "/srv/place/work/";

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(apart_empty(&a, bad[i], NULL) == ERR_INVALID ||
		    apart_empty(&a, bad[i], NULL) == ERR_LIMIT);
	memset(path + strlen(path), 'x', APART_NAME_MAX);
	assert_int_equal(apart_show(&a, path, NULL), ERR_LIMIT);
	assert_int_equal(apart_empty(&a, "/srv/place/work/x", NULL), ERR_IO);
	assert_int_equal(apart_empty(NULL, "/etc", NULL), ERR_OK);
	assert_string_equal(apart_base(NULL, "/home"), "/home");
	assert_string_equal(apart_base(&a, "/home"), "/srv/place");
}

/* In the child, with the rights of an agent's service. */
static int
begin(struct apart *a)
{
	*a = (struct apart){.fd = -1,
	    .pool = -1,
	    .user = {.uid = ANOTHER_TWO,
		.gid = ANOTHER_TWO,
		.before = ANOTHER_ONE,
		.before_gid = ANOTHER_ONE}};
	const gid_t groups[] = {ANOTHER_TWO};

	NEED(setgroups(1, groups) == 0 && another_user_with_rights(ANOTHER_ONE));
	return 0;
}

static void
in_child(int (*what)(struct apart *a))
{
	struct apart a;
	char path[128];
	int status = 0;

	if (geteuid() != 0) {
		print_message("skipped: needs the superuser\n");
		skip();
	}
	strcpy(top, "/tmp/rivulet-test-apart.XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/one", top);
	assert_int_equal(chmod(top, 0755), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, ANOTHER_ONE, ANOTHER_TWO), 0);
	assert_int_equal(chmod(path, 0750), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int line = begin(&a);
		_exit(line ? line : what(&a));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(file_remove_dir(top, NULL), ERR_OK);
	if (status)
		fail_msg("line %d, signal %d", WEXITSTATUS(status), WTERMSIG(status));
}

static int
find_place(struct apart *a)
{
	char path[128];
	struct apart other = *a;

	snprintf(path, sizeof(path), "%s/one", top);
	NEED(open_place(a, top, "none", NULL) == ERR_NOTFOUND);
	NEED(open_place(a, "/tmp", "one", NULL) == ERR_DENIED);
	NEED(chmod(path, 0770) == 0 && open_place(a, top, "one", NULL) == ERR_DENIED);
	NEED(chmod(path, 0700) == 0 && open_place(a, top, "one", NULL) == ERR_DENIED);
	NEED(chmod(path, 0750) == 0 && chown(path, (uid_t)-1, ANOTHER_ONE) == 0);
	NEED(open_place(a, top, "one", NULL) == ERR_DENIED && a->fd < 0);
	NEED(chown(path, (uid_t)-1, ANOTHER_TWO) == 0 && !open_place(a, top, "one", NULL) &&
	    a->fd >= 0);
	NEED(!make_folders(a, NULL) && !make_folders(a, NULL));
	NEED(open_place(&other, top, "one", NULL) == ERR_EXISTS && other.fd < 0);
	apart_deinit(a);
	NEED(!open_place(&other, top, "one", NULL));
	apart_deinit(&other);
	return 0;
}

/* What `script` prints as the other user. */
static bool
say(struct spawner_pool *n, const char *script, char *out, size_t room)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct child_result result;
	struct spawner s;

	if (spawner_pool_spawner(n, &s, NULL))
		return false;
	const struct child_options o = {.spawner = &s,
	    .grace_s = 1,
	    .seconds = 60,
	    .order = {.argv = argv, .directory = "/", .memory_bytes = 1u << 30}};
	enum err e = child_run(&result, &o, out, room, NULL);
	spawner_deinit(&s);
	return !e && result.exited && result.code == 0;
}

/* An ask as no agent makes it. */
static int
ask_for(const struct apart *a, uint32_t verb, const char *name, const char *below)
{
	struct apart_ask about = {.verb = verb};

	snprintf(about.name, sizeof(about.name), "%s", name);
	snprintf(about.below, sizeof(about.below), "%s", below);
	return (int)ask(a, &about, NULL);
}

/* A directory of a task, in which the other leaves what it likes. */
static int
empty_and_show(struct apart *a, struct spawner_pool *n)
{
	char said[512], script[512], path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/one/work/task", top);
	NEED(mkdir(path, 0700) == 0 && !apart_give_path(a, path, true, NULL));
	snprintf(script, sizeof(script),
	    "cd %s && umask 077 && echo x >report && mkdir -p d/e && echo y >d/e/f && chmod 0 d/e "
	    "d && "
	    "ln -s /etc link && mkfifo -m 0 pipe",
	    path);
	NEED(say(n, script, said, sizeof(said)));
	snprintf(script, sizeof(script), "%s/report", path);
	NEED(open(script, O_RDONLY) < 0 && errno == EACCES);
	NEED(!apart_show(a, path, NULL));
	NEED(open(script, O_RDONLY) >= 0);
	/* What is not below is not for it; nor is what is no verb. */
	NEED(ask_for(a, APART_EMPTY, "..", "") == ERR_INVALID);
	NEED(ask_for(a, APART_EMPTY, "task", "..") == ERR_INVALID);
	NEED(ask_for(a, APART_EMPTY, "../trainers", "") == ERR_INVALID);
	NEED(ask_for(a, APART_EMPTY, "task", "link") != ERR_OK);
	NEED(ask_for(a, APART_CACHE, "task", "d") == ERR_INVALID);
	NEED(ask_for(a, 77, "task", "") == ERR_INVALID);
	NEED(stat(script, &st) == 0);
	NEED(!apart_empty(a, path, NULL) && rmdir(path) == 0);
	NEED(!apart_empty(a, path, NULL));
	return 0;
}

/* Its place for temporary files is made anew, the rest stays. */
static int
keep_cache(struct apart *a, struct spawner_pool *n)
{
	char said[512], script[512], path[128];

	snprintf(path, sizeof(path), "%s/one/trainers/x", top);
	NEED(mkdir(path, 0700) == 0 && !apart_give_path(a, path, true, NULL));
	NEED(!apart_cache(a, "x", NULL));
	snprintf(script, sizeof(script), "cd %s && touch kept tmp/gone && chmod 0 tmp", path);
	NEED(say(n, script, said, sizeof(said)) && !apart_cache(a, "x", NULL));
	snprintf(script, sizeof(script), "ls %s/* && [ ! -w %s/one ]", path, top);
	NEED(say(n, script, said, sizeof(said)) && strstr(said, "kept") && !strstr(said, "gone"));
	snprintf(script, sizeof(script), "rm -r %s/*", path);
	NEED(say(n, script, said, sizeof(said)));
	return 0;
}

/* By the one that may. */
static int
end_program(struct spawner_pool *n)
{
	const char *const argv[] = {"sleep", "1000", NULL};
	const struct spawner_order order = {.argv = argv,
	    .environment = (const char *const *)(size_t)environ,
	    .directory = "/",
	    .output = 2,
	    .answer = 2};
	struct spawner s;
	struct spawner_end end;

	NEED(!spawner_pool_spawner(n, &s, NULL) && !spawner_start(&s, &order, NULL));
	spawner_signal(&s, SIGTERM);
	while (spawner_ended(&s, &end) == ERR_AGAIN)
		usleep(1000);
	NEED(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGTERM);
	spawner_deinit(&s);
	return 0;
}

static int
serve_asks(struct apart *a)
{
	struct spawner_pool n;
	char said[512];

	NEED(!open_place(a, top, "one", NULL) && !make_folders(a, NULL));
	NEED(!spawner_pool_init(&n, a, NULL));
	NEED(user_check_rights(NULL) == ERR_DENIED);
	/* Who has the rights is closed to this process, too. */
	NEED(ptrace(PTRACE_SEIZE, n.pid, NULL, NULL) != 0);
	NEED(setresuid(ANOTHER_TWO, ANOTHER_TWO, ANOTHER_TWO) != 0);
	NEED(say(&n, "id -u; id -g; grep -cE '^Cap(Inh|Prm|Eff|Amb):.0+$' /proc/self/status", said,
	    sizeof(said)));
	NEED(strcmp(said, "64102\n64102\n4\n") == 0);
	int line = empty_and_show(a, &n);
	line = line ? line : keep_cache(a, &n);
	line = line ? line : end_program(&n);
	spawner_pool_deinit(&n);
	NEED(ask_for(a, APART_EMPTY, "task", "") == ERR_IO);
	apart_deinit(a);
	return line;
}

static void
test_place(void **state)
{
	(void)state;
	in_child(find_place);
}

static void
test_asks(void **state)
{
	(void)state;
	in_child(serve_asks);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_paths),
	    cmocka_unit_test(test_place),
	    cmocka_unit_test(test_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
