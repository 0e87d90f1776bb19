#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "age.h"
#include "answers.h"
#include "audit.h"
#include "begin.h"
#include "buf.h"
#include "clock.h"
#include "command.h"
#include "config.h"
#include "cut.h"
#include "drive.h"
#include "inspect.h"
#include "log.h"
#include "messages.h"
#include "notify.h"
#include "option.h"
#include "registry.h"
#include "server.h"
#include "setup.h"
#include "shared.h"
#include "spool.h"
#include "tls.h"
#include "trial.h"
#include "version.h"

#define TICK_NS 50000000
#define WARN_MS 86400000
#define SETTLE_MS 1000
#define FLUSH_MS 60000 /* what devices were heard to say goes to the database */

/* --- running */

#define FILES_BESIDE 64 /* descriptors that are no connection's */

/* Are there too few descriptors for the connections that the configuration allows? The start raises the soft limit to the hard one. */
static bool
lacks_files(const struct config *config, char text[256])
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_max == RLIM_INFINITY ||
	    r.rlim_max >= (rlim_t)config->connections + FILES_BESIDE)
		return false;
	snprintf(text, 256,
	    "[limits] connections is %u, and this process may have %llu descriptors: raise "
	    "LimitNOFILE (ulimit -n) above %u, or lower connections",
	    config->connections, (unsigned long long)r.rlim_max,
	    config->connections + FILES_BESIDE);
	return true;
}

static void
take_log(const struct config *config)
{
	log_set_level(config->log_level);
	log_set_format(config->log_format);
}

/* The last line of a start that failed. For a person as any command's, for a log store as any line of the log. */
static void
tell_failed(const struct config *config, const struct why *why)
{
	if (config->log_format == LINE_TEXT)
		(void)command_fail(why);
	else
		log_event(LOG_LEVEL_ERROR, "start.failed", LOG_S("why", why->text));
}

static void
log_warnings(const struct config *config)
{
	char text[256];

	if (lacks_files(config, text))
		log_event(LOG_LEVEL_WARN, "config.warning", LOG_S("why", text));
	for (size_t i = 0; i < config->warnings.count; i++)
		log_event(
		    LOG_LEVEL_WARN, "config.warning", LOG_S("why", config->warnings.text[i].text));
}

static void
reload(struct setup *setup, const char *path)
{
	struct config *config = malloc(sizeof(*config));
	struct why why = {""};

	if (!config)
		return;
	notify_send("RELOADING=1");
	config_defaults(config);
	enum err e = config_load(config, path, &why);
	if (!e)
		e = setup_reload(setup, config, &why);
	if (e) {
		log_event(LOG_LEVEL_ERROR, "reload.failed", LOG_S("why", why.text));
	} else {
		take_log(config);
		log_event(LOG_LEVEL_INFO, "reload.done", LOG_S("config", path));
		log_warnings(config);
		setup_warn(setup);
		/* Whoever reloads may be about to look at the database, for "rivuletd ca status". */
		registry_flush(setup_services(setup)->registry, setup_services(setup)->store);
	}
	notify_send("READY=1");
	free(config);
}

/* Waits for signals, drives the rounds' timers and the service manager's watchdog. */
static void
serve(struct setup *setup, const sigset_t *signals, const char *path)
{
	const struct timespec tick = {0, TICK_NS};
	const struct services *s = setup_services(setup);
	uint64_t watchdog = notify_watchdog_ms(), next = clock_ms(), flush = next + FLUSH_MS;
	uint64_t warn = next, settle = next;

	for (;;) {
		int sig = sigtimedwait(signals, NULL, &tick);
		if (sig == SIGTERM || sig == SIGINT)
			break;
		if (sig == SIGHUP)
			reload(setup, path);
		rounds_tick(s->engine);
		audit_tick(s->audit);
		const struct config *c = shared_take(s->config);
		spool_expire(s->spool, c->spool_part_s * 1000);
		shared_give(s->config, c);
		if (clock_ms() >= settle) {
			registry_settle(s->registry);
			device_status_sweep(s->registry);
			age_tick(s->age);
			if (registry_has_renewed(s->registry))
				registry_flush(s->registry, s->store);
			settle = clock_ms() + SETTLE_MS;
		}
		if (clock_ms() >= flush) {
			registry_flush(s->registry, s->store);
			flush = clock_ms() + FLUSH_MS;
		}
		if (clock_ms() >= warn) {
			setup_warn(setup);
			warn = clock_ms() + WARN_MS;
		}
		if (watchdog && clock_ms() >= next) {
			notify_send("WATCHDOG=1");
			next = clock_ms() + watchdog;
		}
	}
	notify_send("STOPPING=1");
	log_event(LOG_LEVEL_INFO, "stopping", LOG_S("why", "signal"));
}

static int
run(const char *path, const struct config *config)
{
	struct answers *answers = NULL;
	struct setup *setup = NULL;
	struct why why = {""};
	sigset_t signals;

	buf_give_back();
	cut_survive();
	/* Blocked before any thread starts, so that only serve() sees them. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	take_log(config);
	log_warnings(config);
	/* Before the sandbox, which lets nothing be written there. */
	answers_open(&answers);
	enum err e = begin_setup(&setup, config, answers, &signals, &why);
	if (e)
		answers_free(answers);
	if (e == ERR_CLOSED)
		return COMMAND_OK;
	if (e) {
		tell_failed(config, &why);
		return begin_passes(e) ? COMMAND_FAILED : COMMAND_PERSON;
	}
	log_event(LOG_LEVEL_INFO, "started", LOG_S("version", version_text()),
	    LOG_S("backend", tls_backend()),
	    LOG_U("port", server_port(setup_services(setup)->server)),
	    LOG_S("state", config->state_dir));
	notify_send("READY=1");
	serve(setup, &signals, path);
	setup_free(setup);
	answers_free(answers);
	return 0;
}

/* --- options */

static const struct command_verb commands[] = {
    {"init", cmd_init_main, "make CA, certificates and the first join token"},
    {"ca", cmd_ca_main, "replace the CA"},
    {"check", cmd_check_main, "examine a state directory, and repair it"},
    {"backup", cmd_backup_main, "copy the state, also while the coordinator runs"},
    {"restore", cmd_restore_main, "copy a backup into an empty state directory"},
    {"keys", cmd_keys_main, "take the keys to a safe place, and back"},
    {NULL, NULL, NULL},
};

static void
print_help(FILE *to)
{
	fputs("usage: rivuletd [--config FILE]                    run the coordinator\n"
	      "       rivuletd [--config FILE] --check-config     read the configuration, try it, "
	      "say what is wrong\n"
	      "       rivuletd [--config FILE] COMMAND [...]\n"
	      "       rivuletd --version | --help\n\n",
	    to);
	for (const struct command_verb *v = commands; v->name; v++)
		fprintf(to, "  %-8s %s\n", v->name, v->help);
	fputs(
	    "\nFILE defaults to " CONFIG_DEFAULT ". \"rivuletd COMMAND --help\" says more.\n", to);
}

static int
run_config(const char *path)
{
	struct config *config = command_config(path);
	int rc = config ? run(path, config) : COMMAND_PERSON;

	free(config);
	return rc;
}

static void
print_finding(void *count, const char *text)
{
	fprintf(stderr, "rivuletd: %s\n", text);
	++*(unsigned *)count;
}

/* Reads the configuration and reports mistakes; only without mistakes is it tried. Returns how many findings there were. */
static unsigned
examine(struct config *config, const char *path)
{
	unsigned count = 0;
	struct ini_notes notes = {.mistake = print_finding, .context = &count};
	char text[256];
	struct why why = {""};
	enum err e = config_examine(config, path, &notes, &why);

	if (e && count == 0)
		print_finding(&count, why.text);
	for (size_t i = 0; i < config->warnings.count; i++)
		fprintf(stderr, "rivuletd: warning: %s\n", config->warnings.text[i].text);
	if (!e && lacks_files(config, text))
		fprintf(stderr, "rivuletd: warning: %s\n", text);
	if (!e)
		trial_run(&(struct trial){config, &notes, print_finding, &count});
	ini_notes_deinit(&notes);
	return count;
}

static int
check_config(const char *path)
{
	struct config *config = malloc(sizeof(*config));
	unsigned count = config ? examine(config, path) : 1;

	free(config);
	if (count == 0)
		return printf("%s: the configuration is valid\n", path) < 0;
	printf("%s: %u finding%s\n", path, count, count == 1 ? "" : "s");
	return COMMAND_PERSON;
}

/* The hidden word: all tables of the program, and the settings. */
static int
print_tables(const struct option_entry *table)
{
	struct buf text;

	command_print_verbs("", table, commands);
	buf_init(&text, OPTION_TEXT_MAX);
	enum err e = ini_list(&text, config_sections());
	if (!e)
		fputs(buf_str(&text), stdout);
	buf_deinit(&text);
	return e ? COMMAND_FAILED : COMMAND_OK;
}

static int
misused(const char *reason)
{
	fprintf(stderr, "rivuletd: %s\n", reason);
	print_help(stderr);
	return COMMAND_USAGE;
}

static int
run_command(const char *path, int argc, char **argv)
{
	struct why why;

	for (const struct command_verb *v = commands; v->name; v++)
		if (strcmp(v->name, argv[0]) == 0)
			return v->main(path, argc, argv);
	(void)err_set(&why, ERR_INVALID, "unknown command \"%.60s\"", argv[0]);
	return misused(why.text);
}

int
main(int argc, char **argv)
{
	const char *path = CONFIG_DEFAULT, *parent;
	bool check = false, version = false, help = false;
	const struct option_entry table[] = {
	    COMMAND_CONFIG(&path),
	    {"check-config", 0, NULL, "read the configuration, try it, say what is wrong", NULL,
		&check},
	    {"version", 0, NULL, "say the version, and those of protocol and database", NULL,
		&version},
	    {"help", 'h', NULL, "name the commands", NULL, &help},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	struct why why = {""};
	int first = 1;

	if (option_is_query(&parent, argc, argv))
		return print_tables(table);
	if (option_parse_head(&first, table, argc, argv, &why))
		return misused(why.text);
	if (help) {
		print_help(stdout);
		return COMMAND_OK;
	}
	if (version)
		return printf("rivuletd %s (protocol %d, schema %" PRIu64 ")\n", version_text(),
			   MESSAGES_PROTOCOL, store_inspect_known()) < 0;
	if (check && first < argc)
		return misused("--check-config goes without a command");
	if (check)
		return check_config(path);
	return first < argc ? run_command(path, argc - first, argv + first) : run_config(path);
}
