#include "nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fds.h"

static const char gone[] = "the process that starts programs is gone: start rivulet again";

/* One end of what connects the spawner with its owner comes as a file. */
static _Noreturn void
serve(int fd, const struct cgroup_place *place)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), end;
	char none;

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
	close_range(4, ~0U, 0);
	(void)!chdir("/");
	while (fds_receive(3, &none, sizeof(none), &end, 1)) {
		pid_t pid = end < 0 ? -1 : fork();
		if (pid == 0) {
			signal(SIGCHLD, SIG_DFL);
			spawner_serve(end, place);
		}
		if (end >= 0)
			close(end);
	}
	_exit(0);
}

enum err
nursery_init(struct nursery *n, struct why *why)
{
	struct cgroup_place place;
	int ends[2];

	n->fd = -1;
	/* Before there are others to move. Without groups much holds as well. */
	(void)!cgroup_prepare(&place, "/proc", "/sys/fs/cgroup", NULL);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_errno(why, "socketpair");
	n->pid = fork();
	if (n->pid == 0)
		serve(ends[1], &place);
	enum err e = n->pid < 0 ? err_errno(why, "fork") : ERR_OK;
	close(ends[1]);
	if (e)
		close(ends[0]);
	else
		n->fd = ends[0];
	return e;
}

void
nursery_deinit(struct nursery *n)
{
	if (n->fd < 0)
		return;
	close(n->fd);
	n->fd = -1;
	while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

enum err
nursery_spawner(struct nursery *n, struct spawner *out, struct why *why)
{
	char none = 0;
	int ends[2];

	*out = (struct spawner){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_errno(why, "socketpair");
	enum err e = fds_send(n->fd, &none, sizeof(none), &ends[1], 1);
	close(ends[1]);
	if (e)
		close(ends[0]);
	else
		out->fd = ends[0];
	return e ? err_set(why, e, gone) : ERR_OK;
}
