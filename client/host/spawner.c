#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "become.h"
#include "buf.h"
#include "cgroup.h"
#include "err.h"
#include "fds.h"
#include "file.h"
#include "shm.h"
#include "tree.h"

#define ORDER_MAX (4u << 20)
#define WATCH_MS 200 /* between two looks at the memory */
#define TIDY_MS 1000 /* and at who else lives */
/* For what is done as another user: longer than a tree is removed at a time, or than a list of processes takes. */
#define TIDY_MOST_MS 70000
#define MEASURE_MOST_MS 5000

/* --- orders: a file without a name, and with it the ends to write to and to read from */

enum { ORDER_FILE, ORDER_OUTPUT, ORDER_ANSWER, ORDER_IN, ORDER_OUT, ORDER_FDS };

struct head {
	uint64_t memory_bytes;
	uint32_t words, variables, paths;
	bool confined, has_but;
};

static enum err
put_text(struct buf *b, const char *text)
{
	return buf_append(b, text, strlen(text) + 1);
}

static enum err
put_list(struct buf *b, const char *const *list, uint32_t *count)
{
	enum err e = ERR_OK;

	for (*count = 0; !e && list[*count]; ++*count)
		e = put_text(b, list[*count]);
	return e;
}

static enum err
encode(struct buf *b, const struct spawner_order *o)
{
	struct head h = {.memory_bytes = o->memory_bytes,
	    .paths = (uint32_t)o->path_count,
	    .confined = o->paths,
	    .has_but = o->but};
	enum err e = buf_append(b, &h, sizeof(h));

	if (!e)
		e = put_text(b, o->directory);
	if (!e && o->but)
		e = put_text(b, o->but);
	if (!e)
		e = put_list(b, o->argv, &h.words);
	if (!e)
		e = put_list(b, o->environment, &h.variables);
	for (size_t i = 0; !e && i < o->path_count; i++) {
		e = buf_append(b, &o->paths[i].access, sizeof(o->paths[i].access));
		if (!e)
			e = put_text(b, o->paths[i].path);
	}
	if (!e)
		memcpy(b->data, &h, sizeof(h));
	return e;
}

static enum err
make_file(const struct spawner_order *o, int *fd, struct why *why)
{
	struct buf b;

	*fd = memfd_create("order", MFD_CLOEXEC);
	if (*fd < 0)
		return err_errno(why, "memfd_create");
	buf_init(&b, ORDER_MAX);
	enum err e = encode(&b, o);
	if (!e)
		e = file_pwrite(*fd, b.data, b.len, 0);
	buf_deinit(&b);
	return e ? err_set(why, e, "the order to start %.100s", o->argv[0]) : ERR_OK;
}

/* --- the process: its loop */

struct order {
	struct spawner_order o;
	char *text;
	struct head head;
	int fds[ORDER_FDS];
};

struct spawner_process {
	int fd; /* to the other end */
	int children; /* readable when one has ended */
	const struct cgroup_place *place;
	const struct apart *apart; /* NULL: programs have this process's user */
	struct shm shm; /* what is left there */
};

/* NULL-terminated pointers into the text. */
static const char **
take_list(const char **p, uint32_t count)
{
	const char **list = calloc(count + (size_t)1, sizeof(*list));

	for (uint32_t i = 0; list && i < count; i++) {
		list[i] = *p;
		*p += strlen(*p) + 1;
	}
	return list;
}

static struct spawner_path *
take_paths(const char *p, uint32_t count)
{
	struct spawner_path *paths = calloc(count + (size_t)1, sizeof(*paths));

	for (uint32_t i = 0; paths && i < count; i++) {
		memcpy(&paths[i].access, p, sizeof(paths[i].access));
		paths[i].path = p + sizeof(paths[i].access);
		p = paths[i].path + strlen(paths[i].path) + 1;
	}
	return paths;
}

/* The text was made by this very program, so that it is what it says; and a process that has the program's user by now reads it. */
static bool
decode(struct order *order)
{
	const struct head h = order->head;
	const char *p = order->text + sizeof(h);

	order->o = (struct spawner_order){.memory_bytes = h.memory_bytes, .directory = p};
	p += strlen(p) + 1;
	if (h.has_but) {
		order->o.but = p;
		p += strlen(p) + 1;
	}
	order->o.argv = take_list(&p, h.words);
	order->o.environment = take_list(&p, h.variables);
	order->o.path_count = h.paths;
	order->o.paths = h.confined ? take_paths(p, h.paths) : NULL;
	return order->o.argv && order->o.environment && (!h.confined || order->o.paths);
}

static bool
read_order(struct order *order)
{
	struct stat st;

	if (fstat(order->fds[ORDER_FILE], &st) != 0 || st.st_size < (off_t)sizeof(order->head) ||
	    st.st_size > (off_t)ORDER_MAX)
		return false;
	size_t len = (size_t)st.st_size;
	order->text = malloc(len);
	return order->text && !file_pread(order->fds[ORDER_FILE], order->text, len, 0) &&
	    decode(order);
}

/* All of it that this process looks at itself. */
static bool
read_head(struct order *order)
{
	return !file_pread(order->fds[ORDER_FILE], &order->head, sizeof(order->head), 0);
}

static void
drop_order(struct order *order)
{
	for (size_t i = 0; i < ORDER_FDS; i++)
		if (order->fds[i] >= 0)
			close(order->fds[i]);
}

/* --- as the user of programs */

struct duty {
	uint64_t (*work)(void *context);
	void *context;
	int most_ms;
};

/* What it returns; `unknown` without an answer: programs of that user may end or stop the process that does it. */
static uint64_t
do_apart(const struct spawner_process *me, const struct duty *duty, uint64_t unknown)
{
	uint64_t answer = unknown;
	int ends[2];

	if (!me->apart)
		return duty->work(duty->context);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return unknown;
	pid_t pid = fork();
	if (pid == 0) {
		answer = user_become(&me->apart->user, NULL) ? unknown : duty->work(duty->context);
		_exit(write(ends[1], &answer, sizeof(answer)) < 0);
	}
	close(ends[1]);
	struct pollfd p = {.fd = ends[0], .events = POLLIN};
	while (pid > 0 && poll(&p, 1, duty->most_ms) < 0 && errno == EINTR)
		;
	if (pid > 0 && p.revents && read(ends[0], &answer, sizeof(answer)) != sizeof(answer))
		answer = unknown;
	close(ends[0]);
	if (pid > 0)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return answer;
}

/* --- the program */

/* Also what left its session and process group: it is our child when its parent has ended. The group's first is still to be waited
 * for, so that nobody else has its number. */
static void
kill_all(pid_t group, int *status)
{
	siginfo_t info;

	while (waitid(P_PID, (id_t)group, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
		;
	kill(-group, SIGKILL);
	while (waitpid(group, status, 0) < 0 && errno == EINTR)
		;
	do
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	while (tree_kill(getpid()) > 0 && waitpid(-1, NULL, 0) > 0);
}

/* Passes signals on; false when nobody is left to send any. */
static bool
pass_signal(int fd, pid_t pid)
{
	int sig = 0, fds[ORDER_FDS];

	if (!fds_receive(fd, &sig, sizeof(sig), fds, ORDER_FDS))
		return false;
	/* Asked to finish, a program ends what it started itself: workers of PyTorch that are ended beside it spoil its batches. */
	if (sig > 0)
		kill(pid, sig);
	/* It may have left its group. */
	if (sig == SIGKILL)
		kill(-pid, sig);
	return true;
}

/* It stays to be waited for. */
static bool
has_ended(int children, pid_t pid)
{
	struct signalfd_siginfo seen;
	siginfo_t info = {.si_pid = 0};

	while (read(children, &seen, sizeof(seen)) > 0)
		;
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

struct measure {
	pid_t root;
	uint64_t cap;
};

static uint64_t
measure(void *context)
{
	const struct measure *m = context;

	return tree_memory_over(m->root, m->cap);
}

/* What processes share is seen by their user alone; here it is counted for each, which is enough to know that it is not too much. */
static uint64_t
memory_over(const struct spawner_process *me, uint64_t cap)
{
	struct measure m = {getpid(), cap};
	uint64_t held = measure(&m);

	return held && me->apart ? do_apart(me, &(struct duty){measure, &m, MEASURE_MOST_MS}, held)
				 : held;
}

/* Until it ends, or has more memory than it may: that, else 0. */
static uint64_t
watch(const struct spawner_process *me, pid_t pid, uint64_t cap)
{
	struct pollfd p[] = {
	    {.fd = me->fd, .events = POLLIN}, {.fd = me->children, .events = POLLIN}};
	uint64_t held = 0;

	while (!held && !has_ended(me->children, pid)) {
		poll(p, 2, cap > 0 ? WATCH_MS : -1);
		/* Nobody is left who wants it. */
		if (p[0].revents && !pass_signal(me->fd, pid)) {
			kill(pid, SIGKILL);
			break;
		}
		if (cap > 0)
			held = memory_over(me, cap);
	}
	return held;
}

/* Where there are no groups, what its processes hold is looked at now and then. */
static uint64_t
watch_memory(const struct spawner_process *me, pid_t pid, uint64_t cap, const struct cgroup *group)
{
	uint64_t held = watch(me, pid, *group->path ? 0 : cap);

	return *group->path ? cgroup_memory_over(group) : held;
}

static _Noreturn void
become(const struct spawner_process *me, struct order *order, const struct cgroup *group)
{
	const struct become b = {.order = &order->o,
	    .output = order->fds[ORDER_OUTPUT],
	    .answer = order->fds[ORDER_ANSWER],
	    .in = order->fds[ORDER_IN],
	    .out = order->fds[ORDER_OUT],
	    .group = group,
	    .user = me->apart ? &me->apart->user : NULL};

	become_itself(&b);
	if (!read_order(order))
		_exit(SPAWNER_FAILED);
	become_program(&b);
}

static struct spawner_end
run_program(const struct spawner_process *me, struct order *order)
{
	struct spawner_end end = {.status = SPAWNER_FAILED << 8};
	struct cgroup group = {.path = ""};
	bool readable = read_head(order);
	uint64_t cap = order->head.memory_bytes;

	if (readable)
		(void)!cgroup_make(&group, me->place, cap, NULL);
	pid_t pid = readable ? fork() : -1;

	if (pid == 0)
		become(me, order, &group);
	drop_order(order);
	if (pid < 0) {
		cgroup_end(&group);
		return end;
	}
	end.memory = watch_memory(me, pid, cap, &group);
	if (end.memory > 0)
		kill(pid, SIGKILL);
	kill_all(pid, &end.status);
	cgroup_end(&group);
	return end;
}

static uint64_t
end_shm(void *shm)
{
	return shm_end(shm);
}

/* False: it is to be called again. It removes what is of its caller's user; the lock is this process's as well. */
static bool
tidy_shm(struct spawner_process *me)
{
	bool done =
	    me->shm.fd < 0 || do_apart(me, &(struct duty){end_shm, &me->shm, TIDY_MOST_MS}, false);

	if (done)
		shm_deinit(&me->shm);
	return done;
}

static struct spawner_end
carry_out(struct spawner_process *me, struct order *order)
{
	shm_begin(&me->shm, SHM_DIRECTORY);
	struct spawner_end end = run_program(me, order);
	(void)tidy_shm(me);
	return end;
}

/* A terminal's signals are for the other process, which asks the program to finish. */
static void
settle(struct spawner_process *me, int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t ended, held;

	for (int i = 0; i < 3; i++)
		dup2(null, i);
	if (fd != 3)
		dup2(fd, 3);
	fds_close_from(4, me->apart ? me->apart->fd : -1);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	/* What comes for a program before it is one waits until it is; what is only ignored would be lost. */
	held = ended;
	sigaddset(&held, SIGTERM);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGHUP);
	sigprocmask(SIG_SETMASK, &held, NULL);
	me->fd = 3;
	me->children = signalfd(-1, &ended, SFD_NONBLOCK | SFD_CLOEXEC);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)!chdir("/");
}

/* Until there is an order, or nobody to give any. */
static void
tidy_up(struct spawner_process *me)
{
	struct pollfd p = {.fd = me->fd, .events = POLLIN};

	while (!tidy_shm(me) && poll(&p, 1, TIDY_MS) == 0)
		;
}

_Noreturn void
spawner_serve(int fd, const struct cgroup_place *place, const struct apart *apart)
{
	struct spawner_process me = {.place = place, .apart = apart, .shm = {.fd = -1}};
	struct order order;
	int sig = 0;

	settle(&me, fd);
	for (;;) {
		memset(&order, 0, sizeof(order));
		tidy_up(&me);
		if (!fds_receive(me.fd, &sig, sizeof(sig), order.fds, ORDER_FDS))
			_exit(0);
		/* Without files: a signal for a program that has ended meanwhile. */
		if (order.fds[ORDER_FILE] < 0)
			continue;
		struct spawner_end end = carry_out(&me, &order);
		if (send(me.fd, &end, sizeof(end), MSG_NOSIGNAL) < 0)
			_exit(0);
	}
}

/* --- the other end */

enum err
spawner_init(struct spawner *s, struct why *why)
{
	int ends[2];

	s->fd = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_errno(why, "socketpair");
	s->pid = fork();
	if (s->pid == 0)
		spawner_serve(ends[1], &(struct cgroup_place){.path = ""}, NULL);
	enum err e = s->pid < 0 ? err_errno(why, "fork") : ERR_OK;
	close(ends[1]);
	if (e)
		close(ends[0]);
	else
		s->fd = ends[0];
	return e;
}

/* It answers once more at most, and then it is gone. */
static void
wait_for_end(const struct spawner *s)
{
	struct spawner_end end;
	ssize_t n;

	shutdown(s->fd, SHUT_WR);
	do
		n = recv(s->fd, &end, sizeof(end), 0);
	while (n > 0 || (n < 0 && errno == EINTR));
}

void
spawner_deinit(struct spawner *s)
{
	if (s->fd < 0)
		return;
	wait_for_end(s);
	close(s->fd);
	s->fd = -1;
	while (s->pid > 0 && waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

enum err
spawner_start(struct spawner *s, const struct spawner_order *order, struct why *why)
{
	int none = 0;
	int fds[ORDER_FDS] = {
	    [ORDER_OUTPUT] = order->output, [ORDER_ANSWER] = order->answer, [ORDER_FILE] = -1};
	enum err e = make_file(order, &fds[ORDER_FILE], why);

	if (!e && order->words)
		memcpy(&fds[ORDER_IN], order->words, SPAWNER_WORDS * sizeof(int));
	if (!e)
		e = fds_send(s->fd, &none, sizeof(none), fds, order->words ? ORDER_FDS : ORDER_IN);
	if (e == ERR_CLOSED)
		err_set(why, e, "the process that starts programs is gone: start rivulet again");
	else if (e == ERR_IO)
		err_errno(why, "send an order");
	if (fds[ORDER_FILE] >= 0)
		close(fds[ORDER_FILE]);
	return e;
}

void
spawner_signal(struct spawner *s, int signal)
{
	(void)!send(s->fd, &signal, sizeof(signal), MSG_NOSIGNAL);
}

enum err
spawner_ended(struct spawner *s, struct spawner_end *out)
{
	ssize_t n = recv(s->fd, out, sizeof(*out), MSG_DONTWAIT);

	if (n == (ssize_t)sizeof(*out))
		return ERR_OK;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? ERR_AGAIN : ERR_CLOSED;
}
