/*
 * Runs rivuletd or the agent with log_format = json under a test that reads the log as text. A copy of json_log, DIR/rivuletd or DIR/rivulet, has that
 * program's configuration say so (a file in FILE.d), and runs the program of that name in DIR/programs. Its lines are made text again, on the
 * standard error that json_log was given, and appended as they came to DIR/logs/NAME.PID.log, for log_lines.py. Of a shell's
 * background (where SIGINT is ignored) json_log becomes the program, which keeps the process's number, and another process makes the
 * text; else it waits for both, so that all of the text is there when the shell goes on. Commands that write no log are run as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "json.h"
#include "line.h"

#define PAIRS_MAX 64
#define BYTES_MAX (64u << 10)

static void
fail(const char *what)
{
	fprintf(stderr, "json_log: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- the setting */

static const char *
option(char **argv, const char *name)
{
	for (char **a = argv + 1; *a; a++) {
		size_t len = strlen(name);
		if (strcmp(*a, name) == 0)
			return a[1];
		if (strncmp(*a, name, len) == 0 && (*a)[len] == '=')
			return *a + len + 1;
	}
	return NULL;
}

/* Does this command line run the coordinator or the agent, and with which configuration? */
static bool
find_config(char path[PATH_MAX], char **argv, bool daemon)
{
	const char *config = option(argv, "--config"), *home = option(argv, "--home");

	if (daemon) {
		snprintf(path, PATH_MAX, "%s", config ? config : "");
		/* "--config FILE" or "--config=FILE", and nothing more. */
		return config && strncmp(argv[1], "--config", 8) == 0 &&
		    !argv[strchr(argv[1], '=') ? 2 : 3];
	}
	if (!argv[1] || strcmp(argv[1], "run") != 0)
		return false;
	home = home ? home : getenv("RIVULET_HOME");
	if (config)
		snprintf(path, PATH_MAX, "%s", config);
	else
		snprintf(path, PATH_MAX, "%s/rivulet.conf", home ? home : "");
	return config || home;
}

/* What cannot be written leaves the program with text, and log_lines.py finds that. */
static void
put_setting(const char *config, bool daemon)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s.d", config);
	/* For whoever runs the program, whatever the umask. */
	(void)!(mkdir(path, 0755) == 0 && chmod(path, 0755) != 0);
	snprintf(path, sizeof(path), "%s.d/json-log.conf", config);
	FILE *f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "[%s]\nlog_format = json\n", daemon ? "server" : "device");
	(void)!fchmod(fileno(f), 0644);
	fclose(f);
}

/* --- from JSON to text */

/* A character up to 255 is a byte of the value. */
static char *
bytes_of(const char *utf8)
{
	char *out = malloc(strlen(utf8) + 1), *at = out;

	for (const unsigned char *p = (const unsigned char *)utf8; out && *p; p++) {
		const bool two = *p >= 0xc2 && *p <= 0xc3;
		*at++ = (char)(two ? (p[0] & 3) << 6 | (p[1] & 0x3f) : *p);
		p += two;
	}
	if (out)
		*at = '\0';
	return out;
}

static struct line_pair
pair_of(const struct json *v)
{
	uint64_t u;
	double d = 0;

	if (json_kind(v) == JSON_STRING)
		return LINE_S(json_key(v), bytes_of(json_string(v)));
	if (json_u64(v, &u))
		return LINE_U(json_key(v), u);
	return LINE_D(json_key(v), json_double(v, &d) ? d : (double)NAN);
}

static int
level_of(const char *name)
{
	int level = LINE_DEBUG;

	while (level > LINE_ERROR && strcmp(line_level_name(level), name) != 0)
		level--;
	return level;
}

/* The line without its time, as the program would have written it. */
static size_t
print_text(char *out, size_t room, const struct line *l, bool daemon)
{
	if (daemon)
		return line_print(out, room, LINE_TEXT, l);
	size_t n = line_head(out, room, l);
	events_format(out + n, room - n - 1, l->event, l->pairs);
	n += strlen(out + n);
	out[n] = '\n';
	return n + 1;
}

/* The end of a program that failed is for a person. */
static bool
put_failure(FILE *to, const char *event, const struct json *object, bool daemon)
{
	const char *why = json_string(json_get(object, daemon ? "why" : "reason"));

	if (!event || !why || strcmp(event, daemon ? "start.failed" : "run.failed") != 0)
		return false;
	char *text = bytes_of(why);
	fprintf(to, "%s: %s\n", daemon ? "rivuletd" : "rivulet", text ? text : "");
	free(text);
	return true;
}

static void
put_text(FILE *to, const struct json *object, bool daemon)
{
	const char *time = json_string(json_get(object, "time"));
	const char *level = json_string(json_get(object, "level"));
	const char *event = json_string(json_get(object, "event"));
	struct line_pair pairs[PAIRS_MAX + 1];
	char text[BYTES_MAX];
	size_t count = 0;

	if (put_failure(to, event, object, daemon))
		return;
	for (const struct json *v = json_first(object); v && count < PAIRS_MAX; v = json_next(v))
		if (strcmp(json_key(v), "time") != 0 && strcmp(json_key(v), "level") != 0 &&
		    strcmp(json_key(v), "event") != 0 && strcmp(json_key(v), "cut") != 0)
			pairs[count++] = pair_of(v);
	pairs[count] = LINE_END;
	const struct line l = {true, level_of(level ? level : ""), 0, event ? event : "", pairs};
	size_t len = print_text(text, sizeof(text), &l, daemon);
	/* Behind "<6>". */
	fprintf(to, "%s %.*s", time ? time : "", (int)(len - 3), text + 3);
	fflush(to);
	while (count-- > 0)
		if (pairs[count].kind == LINE_STRING)
			free((char *)(uintptr_t)pairs[count].s);
}

/* Until the program has ended, and all that has its standard error. */
static void
translate(int from, const char *raw, bool daemon)
{
	FILE *in = fdopen(from, "r"), *keep = fopen(raw, "a");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	if (!in || !keep)
		fail(raw);
	while ((len = getline(&line, &room, in)) > 0) {
		struct json *object = NULL;
		fwrite(line, 1, (size_t)len, keep);
		fflush(keep);
		if (json_parse(&object, line, (size_t)len, NULL) == ERR_OK)
			put_text(stderr, object, daemon);
		else
			fwrite(line, 1, (size_t)len, stderr);
		json_free(object);
	}
	free(line);
	fclose(keep);
	fclose(in);
}

/* In the background: the process that makes the text is no child of the program, which might wait for its own. Returns in the program. */
static void
become(const int fd[2], const char *raw, bool daemon)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid > 0) {
		close(fd[0]);
		(void)!waitpid(pid, NULL, 0);
		return;
	}
	if (fork() != 0)
		_exit(0);
	/* Neither a terminal's signals nor a shell that waits for standard output shall meet it. */
	setsid();
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	close(fd[1]);
	translate(fd[0], raw, daemon);
	_exit(0);
}

static pid_t child;

static void
pass_on(int sig)
{
	kill(child, sig);
}

/* In the foreground: returns in the program alone. */
static void
stay(const int fd[2], const char *raw, bool daemon)
{
	struct sigaction pass = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
	int status = 0;

	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		close(fd[0]);
		return;
	}
	close(fd[1]);
	sigaction(SIGTERM, &pass, NULL);
	sigaction(SIGINT, &pass, NULL);
	sigaction(SIGHUP, &pass, NULL);
	translate(fd[0], raw, daemon);
	(void)!waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static bool
in_background(void)
{
	struct sigaction now;

	return sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

int
main(int argc, char **argv)
{
	char self[PATH_MAX] = "", program[2 * PATH_MAX], config[PATH_MAX], raw[2 * PATH_MAX];
	int fd[2];

	(void)argc;
	/* Not by argv, nor by the environment: a program that was started by another may have neither. */
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		fail("/proc/self/exe");
	char *name = strrchr(self, '/');
	*name++ = '\0';
	const bool daemon = strcmp(name, "rivuletd") == 0;
	snprintf(program, sizeof(program), "%s/programs/%s", self, name);
	if (find_config(config, argv, daemon)) {
		put_setting(config, daemon);
		snprintf(raw, sizeof(raw), "%s/logs/%s.%d.log", self, name, (int)getpid());
		if (pipe(fd) != 0)
			fail("pipe");
		(in_background() ? become : stay)(fd, raw, daemon);
		dup2(fd[1], STDERR_FILENO);
		close(fd[1]);
	}
	execv(program, argv);
	fail(program);
}
