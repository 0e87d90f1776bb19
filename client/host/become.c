#include "become.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cgroup.h"
#include "confine.h"
#include "sandbox.h"

#define FIRST_WORDS 3 /* descriptors of a program that stays: what it reads, and what it writes */
#define FIRST_TO_GO \
	"1000" /* of oom_score_adj: when memory is short, the trainer goes, not the agent */
#define TRUNCATE_VERSION 3 /* of Landlock, from which on it decides about truncate */

/* It has nothing to lose: all that happened is a program that did not start. */
static _Noreturn void
give_up(const char *what)
{
	dprintf(2, "%s: %s\n", what, strerror(errno));
	_exit(SPAWNER_FAILED);
}

static _Noreturn void
stay_away(const struct why *why)
{
	dprintf(2, "the program is not started, for it cannot be confined: %s\n", why->text);
	_exit(SPAWNER_FAILED);
}

static void
restore_signals(void)
{
	static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	sigset_t none;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		signal(ours[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
go_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, FIRST_TO_GO, sizeof(FIRST_TO_GO) - 1);
	close(fd);
}

static void
confine(const struct spawner_order *o)
{
	struct confine c;
	struct why why;
	enum err e = confine_init(&c, CONFINE_FILES, o->but, &why);

	if (e == ERR_UNSUPPORTED)
		return;
	for (size_t i = 0; !e && i < o->path_count; i++) {
		e = confine_allow(&c, o->paths[i].path, o->paths[i].access, &why);
		/* What it may not look up is not for it either. */
		if (e == ERR_NOTFOUND || (e == ERR_DENIED && access(o->paths[i].path, F_OK) != 0))
			e = ERR_OK;
	}
	if (!e)
		e = confine_enter(&c, &why);
	if (e)
		stay_away(&why);
}

static void
sandbox(const struct cgroup *group)
{
	const struct sandbox_options options = {.memory_counted = *group->path,
	    .truncate_decided = confine_version() >= TRUNCATE_VERSION};
	struct why why;
	enum err e = sandbox_enter(&options, &why);

	if (e && e != ERR_UNSUPPORTED)
		stay_away(&why);
}

/* The first descriptor that is not for the program. Those that came lie above the two that this process had before. */
static unsigned
keep_words(const struct become *b)
{
	if (b->in < 0)
		return FIRST_WORDS;
	if (dup2(b->in, FIRST_WORDS) < 0 || dup2(b->out, FIRST_WORDS + 1) < 0)
		_exit(SPAWNER_FAILED);
	return FIRST_WORDS + 2;
}

void
become_itself(const struct become *b)
{
	struct why why;
	int input = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* A session of its own: it cannot enter the agent's process group, and has no terminal. */
	setsid();
	restore_signals();
	if (input < 0 || dup2(input, 0) < 0 || dup2(b->answer, 1) < 0 || dup2(b->output, 2) < 0)
		_exit(SPAWNER_FAILED);
	if (*b->group->path && !cgroup_enter(b->group))
		give_up(b->group->path);
	if (b->user && user_become(b->user, &why))
		stay_away(&why);
}

_Noreturn void
become_program(const struct become *b)
{
	const struct spawner_order *o = b->order;

	close_range(keep_words(b), ~0U, 0);
	/* Until it is the program, its files below /proc would be the superuser's. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	go_first();
	if (chdir(o->directory) != 0)
		give_up(o->directory);
	if (o->paths) {
		confine(o);
		sandbox(b->group);
	}
	environ = (char **)(size_t)o->environment;
	execvp(o->argv[0], (char *const *)(size_t)o->argv);
	give_up(o->argv[0]);
}
