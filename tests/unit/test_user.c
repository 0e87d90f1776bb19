/* stages: gcc address */
/* What needs the superuser, who alone can give rights away, is skipped without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "another_user.h"
#include "user.h"

#define NEED(what) \
	do { \
		if (!(what)) \
			return __LINE__; \
	} while (0)

static const char *const none[] = {NULL};

/* In a process of its own, for it does not come back. */
static void
in_child(int (*what)(void))
{
	int status = 0;

	if (geteuid() != 0) {
		print_message("skipped: needs the superuser\n");
		skip();
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(what());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("line %d", WEXITSTATUS(status));
}

static int
lose_rights(void)
{
	NEED(another_user_with_rights(ANOTHER_ONE));
	NEED(!user_check_rights(NULL));
	NEED(!user_drop_rights(NULL));
	NEED(user_check_rights(NULL) == ERR_DENIED);
	NEED(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	NEED(setresuid(ANOTHER_TWO, ANOTHER_TWO, ANOTHER_TWO) != 0);
	NEED(setgroups(0, NULL) != 0 && kill(getppid(), 0) != 0);
	return 0;
}

static int
become(void)
{
	const struct user u = {.uid = ANOTHER_TWO,
	    .gid = ANOTHER_TWO,
	    .before = ANOTHER_ONE,
	    .before_gid = ANOTHER_ONE,
	    .groups = {64110},
	    .count = 1};
	gid_t groups[4];
	char name[] = "/tmp/rivulet-test-user.XXXXXX";
	struct stat st;

	NEED(another_user_with_rights(ANOTHER_ONE));
	NEED(!user_keep_rights(NULL) && !user_check_rights(NULL));
	NEED(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 7, 0, 0) == 0);
	NEED(!user_become(&u, NULL));
	NEED(getpgrp() == getpid());
	NEED(getuid() == ANOTHER_TWO && geteuid() == ANOTHER_TWO && getgid() == ANOTHER_TWO);
	NEED(getgroups(4, groups) == 1 && groups[0] == 64110);
	NEED(user_check_rights(NULL) == ERR_DENIED && kill(getppid(), 0) != 0);
	NEED(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	NEED(setuid(ANOTHER_ONE) != 0 && setgid(ANOTHER_ONE) != 0 && setuid(0) != 0);
	int fd = mkstemp(name);
	NEED(fd >= 0 && unlink(name) == 0 && fstat(fd, &st) == 0 && st.st_gid == ANOTHER_TWO);
	/* Without rights, or with those of a process that has none, nobody is become. */
	NEED(user_become(&u, NULL) != ERR_OK);
	return 0;
}

static int
cannot_become(void)
{
	const struct user u = {.uid = ANOTHER_TWO, .gid = ANOTHER_TWO, .before = ANOTHER_ONE};

	NEED(another_user_with_rights(ANOTHER_ONE) && !user_drop_rights(NULL));
	NEED(user_become(&u, NULL) == ERR_DENIED && getuid() == ANOTHER_ONE);
	return 0;
}

static int
find(void)
{
	struct user u;

	NEED(user_find(&u, "nobody", none, NULL) == ERR_DENIED);
	NEED(another_user_with_rights(ANOTHER_ONE));
	NEED(user_find(&u, "rivulet-no-such-user", none, NULL) == ERR_NOTFOUND);
	NEED(user_find(&u, "root", none, NULL) == ERR_DENIED);
	NEED(!user_find(&u, "nobody", none, NULL));
	NEED(u.uid != 0 && u.uid != ANOTHER_ONE && u.before == ANOTHER_ONE);
	return 0;
}

/* The groups of this process that are named, and no other; never the superuser's. */
static int
share_groups(void)
{
	static const char *const shared[] = {"video", "root", "rivulet-no-such-group", NULL};
	const struct group *video = getgrnam("video");
	struct user u;

	if (!video)
		return 0;
	const gid_t video_gid = video->gr_gid, own[] = {video_gid, 0, 64110};
	NEED(setgroups(3, own) == 0 && another_user_with_rights(ANOTHER_ONE));
	NEED(!user_find(&u, "nobody", shared, NULL));
	bool has = false;
	for (size_t i = 0; i < u.count; i++) {
		NEED(u.groups[i] != 0 && u.groups[i] != 64110);
		has = has || u.groups[i] == video_gid;
	}
	NEED(has);
	NEED(!user_find(&u, "nobody", none, NULL));
	for (size_t i = 0; i < u.count; i++)
		NEED(u.groups[i] != video_gid);
	return 0;
}

static int
seen_from_outside(void)
{
	int ends[2];
	char byte;

	NEED(pipe(ends) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (!another_user_with_rights(ANOTHER_ONE) || user_keep_rights(NULL))
			_exit(1);
		close(ends[0]);
		(void)!write(ends[1], "x", 1);
		pause();
	}
	NEED(read(ends[0], &byte, 1) == 1);
	NEED(user_child_has_rights(getpid(), "/proc"));
	NEED(!user_child_has_rights(pid, "/proc") && !user_child_has_rights(getpid(), "/tmp"));
	kill(pid, SIGKILL);
	NEED(waitpid(pid, NULL, 0) == pid);
	NEED(!user_child_has_rights(getpid(), "/proc"));
	return 0;
}

static void
test_lose_rights(void **state)
{
	(void)state;
	in_child(lose_rights);
}

static void
test_become(void **state)
{
	(void)state;
	in_child(become);
	in_child(cannot_become);
}

static void
test_find(void **state)
{
	(void)state;
	in_child(find);
	in_child(share_groups);
}

static void
test_seen_from_outside(void **state)
{
	(void)state;
	in_child(seen_from_outside);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lose_rights),
	    cmocka_unit_test(test_become),
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_seen_from_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
