#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "engine.h"
#include "keys.h"
#include "log.h"
#include "messages.h"
#include "notify.h"
#include "rng.h"
#include "server.h"
#include "setup.h"
#include "store.h"
#include "tls.h"

#define TICK_NS 50000000
#define NAMES_MAX X509_NAMES_MAX
#define FIRST_TOKEN_USES 100
#define FIRST_TOKEN_SECONDS (7 * 86400)

static const char usage[] =
    "usage: rivuletd --config FILE                        run the coordinator\n"
    "       rivuletd --config FILE --check-config         read the configuration, say what is "
    "wrong\n"
    "       rivuletd --config FILE init [--name HOST|IP]...  make CA, certificates and the first "
    "join token\n"
    "       rivuletd --version | --help\n"
    "FILE defaults to /etc/rivulet/rivuletd.conf.\n";

struct options {
	const char *config;
	bool check, init, help, version;
	const char *names[NAMES_MAX];
	size_t name_count;
};

static bool
read_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
	    {"config", required_argument, NULL, 'c'},
	    {"check-config", no_argument, NULL, 'k'},
	    {"name", required_argument, NULL, 'n'},
	    {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'v'},
	    {NULL, 0, NULL, 0},
	};
	int c;

	*o = (struct options){.config = "/etc/rivulet/rivuletd.conf"};
	while ((c = getopt_long(argc, argv, "c:", table, NULL)) != -1) {
		if (c == 'c')
			o->config = optarg;
		else if (c == 'k')
			o->check = true;
		else if (c == 'h')
			o->help = true;
		else if (c == 'v')
			o->version = true;
		else if (c == 'n' && o->name_count < NAMES_MAX)
			o->names[o->name_count++] = optarg;
		else
			return false;
	}
	o->init = optind < argc && strcmp(argv[optind], "init") == 0;
	return optind + (o->init ? 1 : 0) == argc && (o->init || o->name_count == 0);
}

static int
fail(const struct why *why)
{
	fprintf(stderr, "rivuletd: %s\n", why->text);
	return 1;
}

/* --- init */

static enum err
put_token(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_token_put(db, arg);
}

/* The first join token: for devices, good for a week. */
static enum err
first_token(const struct config *config, char text[TOKEN_TEXT_MAX], struct why *why)
{
	struct services s = {.config = config};
	struct store_token row = {.role = "device",
	    .labels = "{}",
	    .uses = FIRST_TOKEN_USES,
	    .uses_left = FIRST_TOKEN_USES,
	    .created_at = clock_wall()};
	char path[CONFIG_PATH_MAX + 16];
	uint8_t task_key[32];
	struct token t;

	row.expires_at = row.created_at + FIRST_TOKEN_SECONDS;
	enum err e = keys_load(config->state_dir, &s, task_key, why);
	if (e == ERR_OK)
		e = rng_bytes(&t, sizeof(t));
	if (e)
		return e;
	memcpy(t.ca_hash, s.ca_hash, sizeof(t.ca_hash));
	memcpy(row.id, t.id, sizeof(row.id));
	hash_sha256(row.secret_hash, t.secret, sizeof(t.secret));
	snprintf(path, sizeof(path), "%s/rivulet.db", config->state_dir);
	e = store_open(&s.store, path, why);
	if (e == ERR_OK)
		e = store_write(s.store, put_token, &row, why);
	store_close(s.store);
	keys_free(&s);
	messages_token_text(text, &t);
	hash_wipe(&t, sizeof(t));
	return e;
}

static int
init(const struct options *o, const struct config *config)
{
	char text[TOKEN_TEXT_MAX];
	struct why why = {""};
	bool fresh = false;

	enum err e = keys_init(config->state_dir, o->names, o->name_count, &fresh, &why);
	if (e == ERR_OK && fresh)
		e = first_token(config, text, &why);
	if (e)
		return fail(&why);
	if (!fresh) {
		fprintf(stderr, "rivuletd: %s is initialised already%s\n", config->state_dir,
		    o->name_count ? "; issued a new server certificate" : "");
		return 0;
	}
	fprintf(stderr,
	    "rivuletd: made the CA and the server certificate in %s/keys\n"
	    "rivuletd: this token lets %d devices join within a week:\n",
	    config->state_dir, FIRST_TOKEN_USES);
	printf("%s\n", text);
	return 0;
}

/* --- running */

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
	if (e == ERR_OK)
		e = setup_reload(setup, config, &why);
	if (e) {
		log_event(LOG_LEVEL_ERROR, "reload.failed", LOG_S("why", why.text));
	} else {
		log_set_level(config->log_level);
		log_event(LOG_LEVEL_INFO, "reload.done", LOG_S("config", path));
	}
	notify_send("READY=1");
	free(config);
}

/* Waits for signals, drives the rounds' timers and the service manager's watchdog. */
static void
serve(struct setup *setup, const sigset_t *signals, const char *path)
{
	const struct timespec tick = {0, TICK_NS};
	uint64_t watchdog = notify_watchdog_ms(), next = clock_ms();

	for (;;) {
		int sig = sigtimedwait(signals, NULL, &tick);
		if (sig == SIGTERM || sig == SIGINT)
			break;
		if (sig == SIGHUP)
			reload(setup, path);
		engine_tick(setup_services(setup)->engine);
		if (watchdog && clock_ms() >= next) {
			notify_send("WATCHDOG=1");
			next = clock_ms() + watchdog;
		}
	}
	notify_send("STOPPING=1");
	log_event(LOG_LEVEL_INFO, "stopping", LOG_S("why", "signal"));
}

static int
run(const struct options *o, const struct config *config)
{
	struct setup *setup = NULL;
	struct why why = {""};
	sigset_t signals;

	/* Blocked before any thread starts, so that only serve() sees them. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	log_set_level(config->log_level);
	enum err e = setup_new(&setup, config, &why);
	if (e == ERR_OK)
		e = setup_start(setup, &why);
	if (e) {
		setup_free(setup);
		return fail(&why);
	}
	log_event(LOG_LEVEL_INFO, "started", LOG_S("version", RIVULET_VERSION),
	    LOG_S("backend", tls_backend()),
	    LOG_U("port", server_port(setup_services(setup)->server)),
	    LOG_S("state", config->state_dir));
	notify_send("READY=1");
	serve(setup, &signals, o->config);
	setup_free(setup);
	return 0;
}

int
main(int argc, char **argv)
{
	struct config *config = malloc(sizeof(*config));
	struct why why = {""};
	struct options o;
	int rc = 2;

	if (!config || !read_options(argc, argv, &o)) {
		fputs(usage, stderr);
	} else if (o.help || o.version) {
		fputs(o.help ? usage : "rivuletd " RIVULET_VERSION "\n", stdout);
		rc = 0;
	} else {
		config_defaults(config);
		if (config_load(config, o.config, &why) != ERR_OK)
			rc = fail(&why);
		else if (o.check)
			rc = printf("%s: the configuration is valid\n", o.config) < 0;
		else
			rc = o.init ? init(&o, config) : run(&o, config);
	}
	free(config);
	return rc;
}
