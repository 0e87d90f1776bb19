/*
 * Runs rivuletd or the agent with log_format = json under a test that reads the log as text: json_log under the name of a program, "rivuletd" or
 * "rivulet", has that program's configuration say so (a file in FILE.d), becomes the program of that name in $JSON_LOG_PROGRAMS, and
 * leaves a process behind that makes text of its lines again, on the standard error that it was given. The lines as they came are
 * appended to $JSON_LOG_DIR/NAME.PID.log, for log_lines.py. Commands that write no log are run as they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
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
	(void)mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s.d/json-log.conf", config);
	FILE *f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "[%s]\nlog_format = json\n", daemon ? "server" : "device");
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

static void
put_text(FILE *to, const struct json *object, bool daemon)
{
	const char *time = json_string(json_get(object, "time"));
	const char *level = json_string(json_get(object, "level"));
	const char *event = json_string(json_get(object, "event"));
	struct line_pair pairs[PAIRS_MAX + 1];
	char text[BYTES_MAX];
	size_t count = 0;

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
static int
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
	return 0;
}

/* No child of the program, which might wait for its own. */
static int
leave_translator(const char *name, bool daemon)
{
	char raw[PATH_MAX];
	int fd[2];

	snprintf(raw, sizeof(raw), "%s/%s.%d.log", getenv("JSON_LOG_DIR"), name, (int)getpid());
	if (pipe(fd) != 0)
		fail("pipe");
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid > 0) {
		close(fd[0]);
		(void)!waitpid(pid, NULL, 0);
		return fd[1];
	}
	if (fork() != 0)
		_exit(0);
	/* Neither a terminal's signals nor a shell that waits for standard output shall meet it. */
	setsid();
	close(fd[1]);
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	_exit(translate(fd[0], raw, daemon));
}

int
main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	const bool daemon = strcmp(name, "rivuletd") == 0;
	char program[PATH_MAX], config[PATH_MAX];

	(void)argc;
	if (!getenv("JSON_LOG_PROGRAMS") || !getenv("JSON_LOG_DIR"))
		fail("JSON_LOG_PROGRAMS and JSON_LOG_DIR name directories");
	snprintf(program, sizeof(program), "%s/%s", getenv("JSON_LOG_PROGRAMS"), name);
	if (find_config(config, argv, daemon)) {
		put_setting(config, daemon);
		int fd = leave_translator(name, daemon);
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
	execv(program, argv);
	fail(program);
}
