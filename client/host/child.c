#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backoff.h"

#define SLICE_MS 100
#define START_FAILED 127
#define READS_MAX \
	64 /* more than a pipe holds; who never stops writing must not keep us from the clock */

struct run {
	const struct child_options *options;
	pid_t pid;
	int output, answer; /* read ends, -1 when closed */
	char *log;
	size_t room, len;
	double until; /* when the next signal is due; 0: never */
	struct child_result *out;
};

enum err
child_split(char *text, const char **argv, size_t max)
{
	size_t n = 0;
	char *p = text;

	for (;;) {
		p += strspn(p, " \t");
		if (!*p)
			break;
		if (n + 1 >= max)
			return ERR_LIMIT;
		char quote = *p == '"' || *p == '\'' ? *p++ : '\0';
		argv[n++] = p;
		p = quote ? strchr(p, quote) : p + strcspn(p, " \t");
		if (!p)
			return ERR_INVALID;
		if (*p)
			*p++ = '\0';
	}
	argv[n] = NULL;
	return n ? ERR_OK : ERR_INVALID;
}

/* In the child, between fork and exec: only async-signal-safe calls. */
static void
become(const struct child_options *o, int output, int answer)
{
	sigset_t none;
	int input = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (input < 0 || dup2(input, 0) < 0 || dup2(answer, 1) < 0 || dup2(output, 2) < 0 ||
	    chdir(o->directory) != 0)
		_exit(START_FAILED);
	close_range(3, ~0U, 0);
	execvp(o->argv[0], (char *const *)o->argv);
	static const char text[] = "the program cannot be started\n";
	(void)!write(2, text, sizeof(text) - 1);
	_exit(START_FAILED);
}

/* Our environment and the additions, which win; the caller frees it, not the strings. */
static char **
make_environment(const char *const *more)
{
	size_t n = 0, k = 0, added = 0;

	while (environ[n])
		n++;
	while (more && more[k])
		k++;
	char **out = calloc(n + k + 1, sizeof(*out));
	if (!out)
		return NULL;
	for (; added < k; added++)
		out[added] = (char *)(size_t)more[added];
	for (size_t i = 0; i < n; i++) {
		bool replaced = false;
		size_t len = strcspn(environ[i], "=") + 1;
		for (size_t j = 0; j < k; j++)
			replaced |= strncmp(environ[i], more[j], len) == 0;
		if (!replaced)
			out[added++] = environ[i];
	}
	return out;
}

/* Gives the end to write to; the other one does not block. */
static enum err
make_pipe(int *from, int *to, struct why *why)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(why, "pipe");
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	*from = ends[0];
	*to = ends[1];
	return ERR_OK;
}

static void
close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static enum err
spawn(struct run *r, int output, int answer, struct why *why)
{
	char **environment = make_environment(r->options->environment);

	if (!environment)
		return err_set(why, ERR_NOMEM, "no memory for an environment");
	r->pid = fork();
	if (r->pid == 0) {
		environ = environment;
		become(r->options, output, answer);
	}
	enum err e = r->pid < 0 ? err_errno(why, "fork") : ERR_OK;
	free(environment);
	if (!e)
		setpgid(r->pid, r->pid);
	return e;
}

static enum err
start(struct run *r, struct why *why)
{
	int output = -1, answer = -1;
	enum err e = make_pipe(&r->output, &output, why);

	if (!e && r->options->answer)
		e = make_pipe(&r->answer, &answer, why);
	if (!e)
		e = spawn(r, output, answer < 0 ? output : answer, why);
	close_end(&output);
	close_end(&answer);
	if (e) {
		close_end(&r->output);
		close_end(&r->answer);
	}
	return e;
}

/* Keeps the last room - 1 bytes. */
static void
keep_tail(struct run *r, const char *data, size_t n)
{
	size_t most = r->room - 1;

	if (n > most) {
		data += n - most;
		n = most;
	}
	if (r->len + n > most) {
		size_t drop = r->len + n - most;
		memmove(r->log, r->log + drop, r->len - drop);
		r->len -= drop;
	}
	memcpy(r->log + r->len, data, n);
	r->len += n;
}

static void
keep_answer(struct run *r, const char *data, size_t n)
{
	if (!r->out->overflow && buf_append(r->options->answer, data, n))
		r->out->overflow = true;
}

static void
drain_end(struct run *r, int *fd, void (*keep)(struct run *r, const char *data, size_t n))
{
	char data[4096];

	for (unsigned reads = 0; *fd >= 0 && reads < READS_MAX; reads++) {
		ssize_t n = read(*fd, data, sizeof(data));
		if (n > 0) {
			keep(r, data, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || errno != EAGAIN)
			close_end(fd);
		return;
	}
}

static void
drain(struct run *r)
{
	drain_end(r, &r->output, keep_tail);
	drain_end(r, &r->answer, keep_answer);
}

/* Deadlines, stop and an endless answer: first SIGTERM, then SIGKILL. */
static void
urge(struct run *r)
{
	const struct child_options *o = r->options;
	double now = backoff_now();
	bool due = r->until > 0 && now >= r->until;

	bool enough = due || r->out->overflow || (o->stop && o->stop(o->context));

	if (!r->out->asked && enough) {
		r->out->asked = true;
		kill(-r->pid, SIGTERM);
		r->until = now + o->grace_s;
	} else if (r->out->asked && !r->out->killed && due) {
		r->out->killed = true;
		kill(-r->pid, SIGKILL);
		r->until = 0;
	}
}

static int
wait_for_end(struct run *r)
{
	int status = 0;

	for (;;) {
		struct pollfd p[] = {
		    {.fd = r->output, .events = POLLIN}, {.fd = r->answer, .events = POLLIN}};
		poll(p, sizeof(p) / sizeof(*p), SLICE_MS);
		drain(r);
		pid_t got = waitpid(r->pid, &status, WNOHANG);
		if (got == r->pid || (got < 0 && errno != EINTR))
			return status;
		urge(r);
	}
}

enum err
child_run(struct child_result *out, const struct child_options *options, char *log, size_t room,
    struct why *why)
{
	struct run r = {
	    .options = options, .output = -1, .answer = -1, .log = log, .room = room, .out = out};

	memset(out, 0, sizeof(*out));
	log[0] = '\0';
	if (options->seconds > 0)
		r.until = backoff_now() + options->seconds;
	enum err e = start(&r, why);
	if (e)
		return e;
	int status = wait_for_end(&r);
	/* What it started in its group must not outlive it. */
	kill(-r.pid, SIGKILL);
	drain(&r);
	close_end(&r.output);
	close_end(&r.answer);
	log[r.len] = '\0';
	out->exited = WIFEXITED(status);
	out->code = out->exited ? WEXITSTATUS(status) : WTERMSIG(status);
	if (out->exited && out->code == START_FAILED)
		return err_set(why, ERR_NOTFOUND, "%.100s cannot be started", options->argv[0]);
	return ERR_OK;
}
