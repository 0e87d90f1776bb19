#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"
#include "apart.h"
#include "buf.h"
#include "clock.h"
#include "cmd.h"
#include "events.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "print.h"

static volatile sig_atomic_t stopping, reloading;

static void
on_signal(int sig)
{
	if (sig == SIGHUP)
		reloading = 1;
	else
		stopping = 1;
}

/* What this program's callbacks share. */
struct run {
	struct events_log log;
	int level; /* most that is logged */
	bool ready;
};

static int
cancelled(void *context)
{
	(void)context;
	return stopping;
}

/* A text line has the event as a program of librivulet gets it. */
static size_t
text_line(char *out, size_t room, const struct line *line)
{
	size_t n = line_head(out, room, line);

	events_format(out + n, room - n - 1, line->event, line->pairs);
	n += strlen(out + n);
	out[n] = '\n';
	return n + 1;
}

static void
log_line(void *context, int level, const char *event, const struct line_pair *pairs)
{
	const struct run *run = context;
	const struct line line = {line_in_journal(), level, clock_wall(), event, pairs};
	char text[EVENTS_LINE_MAX + LINE_ROOM_MIN];

	if (level > run->level)
		return;
	size_t n = run->log.format == LINE_JSON ? line_print(text, sizeof(text), LINE_JSON, &line)
						: text_line(text, sizeof(text), &line);
	(void)!write(STDERR_FILENO, text, n);
}

/* Why the agent ends: for a person as any command's, for a log store as any line of the log. */
static void
tell_failed(struct run *run, const char *why)
{
	if (run->log.format == LINE_TEXT)
		cmd_print_error("%s", why);
	else
		log_line(run, LINE_ERROR, "run.failed", EVENTS_PAIRS(EVENTS_S("reason", why)));
}

/* The service manager's notify socket; without $NOTIFY_SOCKET nothing happens, and failures do not matter. */
static void
notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, strlen(path));
	if (*path == '@')
		to.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len);
	close(fd);
}

static void
on_ready(void *context)
{
	struct run *run = context;

	run->ready = true;
	notify("READY=1");
}

static void
on_status(void *context, const char *line)
{
	char text[256];

	(void)context;
	snprintf(text, sizeof(text), "STATUS=%s", line);
	notify(text);
}

static void
catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigemptyset(&sa.sa_mask);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int
exit_code(int rc)
{
	switch (rc) {
	case RIVULET_OK:
		return CMD_OK;
	case RIVULET_NOTFOUND:
		return CMD_NOT_FOUND;
	case RIVULET_DENIED:
	case RIVULET_REFUSED:
	case RIVULET_STATE:
		return CMD_DENIED;
	case RIVULET_UNREACHABLE:
		return CMD_UNREACHABLE;
	case RIVULET_INVALID:
		return CMD_SETTINGS;
	case RIVULET_CORRUPT:
		return CMD_CORRUPT;
	default:
		return CMD_FAILED;
	}
}

/* Of what can be wrong when the home is opened. */
static bool
needs_person(int rc)
{
	return rc == RIVULET_INVALID || rc == RIVULET_LIMIT || rc == RIVULET_NOTFOUND ||
	    rc == RIVULET_DENIED || rc == RIVULET_CORRUPT;
}

int
cmd_run_main(int argc, char **argv)
{
	const char *home = NULL, *config = NULL, *rounds = NULL;
	bool once = false, apart = false, verbose = false;
	const struct option_entry table[] = {
	    {"home", 0, "DIR", "where identity, models and deltas are kept", &home, NULL},
	    {"config", 0, "FILE", "settings (default: rivulet.conf in the home)", &config, NULL},
	    {"trainer-user", 0, NULL, "run trainers as the user " APART_USER, NULL, &apart},
	    {"once", 0, NULL, "do one task, then exit", NULL, &once},
	    {"rounds", 0, "N", "exit after N accepted deltas", &rounds, NULL},
	    {"verbose", 'v', NULL, "log more", NULL, &verbose},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "run [--home DIR] [--config FILE] [--trainer-user] [--once] [--rounds N]",
	    "The device agent: asks for work, trains, sends, until SIGTERM or SIGINT.", 0, 0};
	struct option_words words;
	struct run run = {.ready = false};
	char why[256] = "";
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	buf_give_back();
	run.level = verbose ? EVENTS_DEBUG : EVENTS_INFO;
	struct agent_options options = {.trainer_user = apart,
	    .once = once,
	    .reload = &reloading,
	    .ready = on_ready,
	    .status = on_status};
	if (rounds && (!num_u64(rounds, UINT64_MAX / 2, &options.rounds) || options.rounds == 0)) {
		fprintf(stderr, "rivulet: --rounds wants a number of at least 1\n");
		return CMD_USAGE;
	}
	options.rivulet = (struct rivulet_options){
	    .home = home, .config = config, .cancel = cancelled, .context = &run};
	run.log.events = (struct events){.context = &run, .hear = log_line};
	options.log = &run.log;
	catch_signals();
	rc = agent_run(&options, why, sizeof(why));
	notify("STOPPING=1");
	if (rc != RIVULET_OK)
		tell_failed(&run, *why ? why : rivulet_error_name(rc));
	return needs_person(rc) && !run.ready ? CMD_PERSON : exit_code(rc);
}
