#include "spawner_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "fds.h"

static const char gone[] = "the process that starts programs is gone: start rivulet again";

/* What the pool knows. */
struct grounds {
	const struct cgroup_place *place;
	const struct apart *apart; /* NULL: programs have this process's user */
};

static void
settle(int fd, const struct apart *apart)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 3; i++)
		dup2(null, i);
	/* A terminal's signals are not for it, and nobody waits for what it made. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (fd != 3)
		dup2(fd, 3);
	fds_close_from(4, apart ? apart->fd : -1);
	(void)!chdir("/");
}

/* In a process of its own: nothing that was said is looked at before. */
static _Noreturn void
carry_out(int end, const struct apart_ask *ask, const struct grounds *g)
{
	signal(SIGCHLD, SIG_DFL);
	if (ask->verb == APART_SPAWNER)
		spawner_serve(end, g->place, g->apart);
	if (g->apart)
		apart_serve(end, g->apart, ask);
	_exit(0);
}

/* One end of what connects the one that carries it out with who asked comes as a file. */
static _Noreturn void
serve(int fd, const struct grounds *g)
{
	struct apart_ask ask = {.name = ""};
	int end;

	settle(fd, g->apart);
	if (g->apart && user_keep_rights(NULL))
		_exit(1);
	while (fds_receive(3, &ask, sizeof(ask), &end, 1)) {
		if (end >= 0 && fork() == 0)
			carry_out(end, &ask, g);
		if (end >= 0)
			close(end);
		memset(&ask, 0, sizeof(ask));
	}
	_exit(0);
}

enum err
spawner_pool_init(struct spawner_pool *n, struct apart *apart, struct why *why)
{
	struct cgroup_place place;
	const struct grounds grounds = {&place, apart};
	int ends[2];

	*n = (struct spawner_pool){.fd = -1, .apart = apart};
	/* Before there are others to move. Without groups much holds as well. */
	(void)!cgroup_prepare(&place, "/proc", "/sys/fs/cgroup", NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_errno(why, "socketpair");
	n->pid = fork();
	if (n->pid == 0)
		serve(ends[1], &grounds);
	enum err e = n->pid < 0 ? err_errno(why, "fork") : ERR_OK;
	close(ends[1]);
	if (e)
		close(ends[0]);
	else
		n->fd = ends[0];
	if (!apart)
		return e;
	apart->pool = n->fd;
	if (!e && (e = user_drop_rights(why)))
		spawner_pool_deinit(n);
	return e;
}

void
spawner_pool_deinit(struct spawner_pool *n)
{
	if (n->fd < 0)
		return;
	close(n->fd);
	n->fd = -1;
	/* Its number is another's before long. */
	if (n->apart)
		n->apart->pool = -1;
	while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

enum err
spawner_pool_spawner(struct spawner_pool *n, struct spawner *out, struct why *why)
{
	const struct apart_ask ask = {.verb = APART_SPAWNER};
	int ends[2];

	*out = (struct spawner){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_errno(why, "socketpair");
	enum err e = fds_send(n->fd, &ask, sizeof(ask), &ends[1], 1);
	close(ends[1]);
	if (e)
		close(ends[0]);
	else
		out->fd = ends[0];
	return e ? err_set(why, e, gone) : ERR_OK;
}
