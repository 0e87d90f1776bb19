#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

#define WORDS_MAX 64
#define LOOK_NS 20000000L

/* Open MPI 4 and 5 have other names for the same. Ranks may be more than processors, on which they are not fixed. */
static const char *const settings[][2] = {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"PRTE_MCA_hwloc_default_binding_policy", "none"},
    /* Its threads' memory would count against a limit; ranks are parallel themselves. */
    {"OPENBLAS_NUM_THREADS", "1"},
    /* All are on this host. */
    {"OMPI_MCA_btl", "^tcp"},
    /* Reading another process's memory needs a right that sandboxes take away. */
    {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
    {"OMPI_MCA_btl_sm_single_copy_mechanism", "none"}};

static bool
may_run(void)
{
	return geteuid() != 0 ||
	    (getenv("OMPI_ALLOW_RUN_AS_ROOT") && getenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"));
}

static _Noreturn void
become(const struct launch *l, const char *word, int in)
{
	char ranks[16], own[PATH_MAX] = "";
	const char *words[WORDS_MAX] = {"mpirun", "-n", ranks, own, "rank"};
	size_t n = 5;

	snprintf(ranks, sizeof(ranks), "%u", l->ranks);
	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0)
		_exit(127);
	for (size_t i = 0; l->options[i] && n < WORDS_MAX - 2; i++)
		words[n++] = l->options[i];
	words[n++] = word;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		setenv(settings[i][0], settings[i][1], 0);
	signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (dup2(in, 0) < 0)
		_exit(127);
	execvp(words[0], (char *const *)(uintptr_t)words);
	fprintf(stderr, "rivulet-site: mpirun: %s\n", strerror(errno));
	_exit(127);
}

/* Rank 0 hears of a wish to finish by a byte. */
static int
watch(pid_t pid, int out, const struct serve_wish *wish)
{
	const struct timespec nap = {0, LOOK_NS};
	bool told = false;
	int status = 0;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
		if (!told && wish->wanted(wish->context))
			told = write(out, "f", 1) == 1;
		nanosleep(&nap, NULL);
	}
	return status;
}

enum err
launch_wait(
    const struct launch *l, const char *word, const struct serve_wish *wish, struct why *why)
{
	int way[2];

	if (!may_run())
		return err_set(why, ERR_DENIED, "mpirun refuses root: an ordinary user is needed");
	if (pipe(way))
		return err_errno(why, "a pipe");
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		close(way[1]);
		become(l, word, way[0]);
	}
	close(way[0]);
	if (pid < 0) {
		close(way[1]);
		return err_errno(why, "a process");
	}
	int status = watch(pid, way[1], wish);
	close(way[1]);
	if (WIFSIGNALED(status))
		return err_set(why, ERR_CLOSED, "mpirun was ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status) == 0
	    ? ERR_OK
	    : err_set(why, ERR_CLOSED, "mpirun ended with status %d", WEXITSTATUS(status));
}

static bool
has_report(const char *directory)
{
	char path[PATH_MAX];

	return directory_file(path, directory, "report.json", NULL) == ERR_OK &&
	    access(path, F_OK) == 0;
}

enum err
launch_task(void *context, const char *directory, const struct serve_wish *wish, struct why *why)
{
	struct why inner = {"mpirun left no result"};
	enum err e = launch_wait(context, directory, wish, &inner);

	/* What counts is a result, not how mpirun ended. */
	if (has_report(directory))
		return ERR_OK;
	(void)e;
	fprintf(stderr, "rivulet-site: %s\n", inner.text);
	return result_give_back(directory, ABORT_TRAINER_FAILED, inner.text, why);
}
