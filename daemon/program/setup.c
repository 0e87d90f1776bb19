#include "setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "age.h"
#include "archive.h"
#include "audit.h"
#include "budget.h"
#include "certificates.h"
#include "clock.h"
#include "config.h"
#include "cpu.h"
#include "drive.h"
#include "evalsets.h"
#include "fault.h"
#include "file.h"
#include "folder.h"
#include "health.h"
#include "hex.h"
#include "incarnation.h"
#include "job_list.h"
#include "json.h"
#include "keys.h"
#include "leftovers.h"
#include "models.h"
#include "names.h"
#include "registry.h"
#include "reserve.h"
#include "retention.h"
#include "routes.h"
#include "server.h"
#include "services.h"
#include "shared.h"
#include "spent.h"
#include "spool.h"
#include "start.h"
#include "stop.h"
#include "store.h"
#include "usage.h"
#include "version.h"
#include "walks.h"
#include "watch.h"
#include "worker.h"

#define STOP_MS 3000 /* with what else takes its time, all is over within five seconds */
#define SLOW_THREADS 3 /* owners whose submissions are at work at a time */
#define SLOW_BY 10
#define CERTIFICATE_DAYS 30 /* from then on it is warned of */

struct setup {
	struct services s;
	struct stop stop;
	struct watch *watch;
	int lock_fd;
	bool started;
};

static void
state_path(const struct setup *u, const char *name, char *out, size_t room)
{
	snprintf(out, room, "%s/%s", u->s.fixed->state_dir, name);
}

static struct config *
copy_config(const struct config *config)
{
	struct config *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = *config;
	return copy;
}

static enum err
use_first_config(struct setup *u, const struct config *config, struct why *why)
{
	struct config *copy = copy_config(config);

	if (!copy || shared_new(&u->s.config, copy, free))
		return err_set(why, ERR_NOMEM, "no memory");
	u->s.fixed = shared_take(u->s.config);
	return ERR_OK;
}

/* Takes the lock of the state directory, which one coordinator has at a time; the lock ends with the process. */
static enum err
take_lock(struct setup *u, struct why *why)
{
	char path[CONFIG_PATH_MAX + 16];

	enum err e = file_mkdirs(u->s.fixed->state_dir, 0700, why);
	if (e)
		return e;
	state_path(u, "lock", path, sizeof(path));
	e = file_lock(path, &u->lock_fd, why);
	return e == ERR_EXISTS
	    ? err_set(why, e, "another coordinator uses %s", u->s.fixed->state_dir)
	    : e;
}

/* --- parts */

/* Which CA devices are to trust. */
static struct json *
ca_facts(const struct services *s)
{
	const struct services_ca *ca = shared_take(s->ca);
	struct json *facts = json_object();
	char hex[KEY_ID_HEX];

	hex_encode(hex, ca->hash, sizeof(ca->hash));
	json_add_string(facts, "ca", hex);
	json_add_u64(facts, "generation", ca->generation);
	json_add_bool(facts, "rotating", ca->rotating);
	shared_give(s->ca, ca);
	return facts;
}

/* Is the CA the one that the configuration names? fresh: the CA that is to be put to use; NULL: the present CA. */
static enum err
check_pinned(const struct services *s, const struct services_ca *fresh, const struct config *c,
    struct why *why)
{
	const struct services_ca *now = shared_take(s->ca);

	enum err e = keys_compare_pinned(fresh ? fresh : now, c->ca, false, why);
	shared_give(s->ca, now);
	return e;
}

static enum err
note_ca(struct store_db *db, void *arg, struct why *why)
{
	const struct services *s = arg;
	const struct services_ca *ca = shared_take(s->ca);

	(void)why;
	enum err e = keys_compare_note(db, ca);
	shared_give(s->ca, ca);
	return e;
}

static enum err
append_start(struct store_db *db, void *arg, struct why *why)
{
	struct json *facts = ca_facts(arg);

	json_add_string(facts, "version", version_text());
	enum err e = audit_append(db, arg,
	    &(struct audit_event){.event = RECORD_COORDINATOR_STARTED, .facts = facts}, why);
	return e ? e : note_ca(db, arg, why);
}

static enum err
append_ca(struct store_db *db, void *arg, struct why *why)
{
	enum err e = audit_append(db, arg,
	    &(struct audit_event){.event = RECORD_CA_CHANGED, .facts = ca_facts(arg)}, why);

	return e ? e : note_ca(db, arg, why);
}

/* ERR_DENIED if the keys are another coordinator's, or older than the last replacement of the CA: devices would be locked out. */
static enum err
compare_ca(struct store_db *db, void *arg, struct why *why)
{
	const struct services *s = arg;
	const struct services_ca *ca = shared_take(s->ca);

	enum err e = keys_compare_database(db, ca, false, why);
	shared_give(s->ca, ca);
	return e;
}

/* Renaming in one transaction. */
struct renaming {
	const struct services *s;
	struct store_db *db;
};

static enum err
note_renamed(void *ctx, const struct store_device *d)
{
	const struct renaming *r = ctx;
	char hex[KEY_ID_HEX];

	hex_encode(hex, d->id, sizeof(d->id));
	log_event(LOG_LEVEL_WARN, "device.renamed", LOG_S("device", hex), LOG_S("name", d->name),
	    LOG_S("why", "another device had its name"));
	return audit_device(r->db, r->s, d, "coordinator", NULL);
}

/* Renames devices with equal names, which a state of an older version may have. */
static enum err
settle_names(struct store_db *db, void *arg, struct why *why)
{
	return names_settle(db, note_renamed, &(struct renaming){arg, db}, why);
}

/* Logs if an audit entry could not be written. The change, made at a start or in files, is not undone: a full disk must not keep a
 * coordinator down, and the next start tries again. */
static void
appended(void *arg, enum err e, const struct why *why)
{
	(void)arg;
	if (e)
		log_event(LOG_LEVEL_ERROR, "audit.failed", LOG_S("why", why->text));
}

/* Notes the task key. With another key than before the coordinator goes on: devices' tasks are refused, and they get new ones. */
static enum err
settle_task_key(struct store_db *db, void *key, struct why *why)
{
	(void)why;
	enum err e = keys_compare_task(db, key);
	if (e == ERR_DENIED)
		log_event(LOG_LEVEL_ERROR, "key.changed", LOG_S("key", "task.key"),
		    LOG_S("why",
			"it is not the one that the database was used with: tasks that "
			"devices hold are refused; see \"rivuletd check\""));
	return e && e != ERR_DENIED ? e : keys_compare_note_task(db, key);
}

/* Opens the store. A start never makes a database: an empty one would know nothing of the models and deltas in the directory. */
static enum err
open_store(struct setup *u, struct why *why)
{
	char path[CONFIG_PATH_MAX + 16];
	struct why said = {""};

	state_path(u, "rivulet.db", path, sizeof(path));
	enum err e = store_open(&u->s.store, path, &said);
	if (e == ERR_NOTFOUND)
		return err_set(why, e,
		    "%.110s; restore a backup (\"rivuletd restore DIR\"), or, without one, begin "
		    "again under the same CA (\"rivuletd init --new-database\")",
		    said.text);
	if (!e && store_was_torn(u->s.store))
		log_event(LOG_LEVEL_WARN, "store.torn",
		    LOG_S("why",
			"the last commit in rivulet.db-wal does not check and is left out: "
			"after a power cut nothing is lost, else what was accepted last"));
	return e ? err_set(why, e, "%s", said.text) : ERR_OK;
}

static enum err
open_storage(struct setup *u, struct why *why)
{
	char path[CONFIG_PATH_MAX + 16];

	enum err e = open_store(u, why);
	if (!e)
		e = store_read(u->s.store, compare_ca, &u->s, why);
	if (!e)
		e = incarnation_begin(&u->s, u->s.fixed->state_dir, why);
	FAULT("start.store");
	state_path(u, "models", path, sizeof(path));
	if (!e)
		e = models_open(&u->s.models, path, why);
	if (!e)
		models_until(u->s.models, u->s.stop);
	if (!e)
		e = spool_start(&u->s, why);
	state_path(u, "reserve", path, sizeof(path));
	if (!e)
		e = reserve_new(&u->s.reserve, path);
	if (!e)
		store_reserve(u->s.store, reserve_give, u->s.reserve);
	FAULT("start.spool");
	if (!e)
		store_before_commit(u->s.store, spool_sync_names, u->s.spool);
	return e;
}

static void
raise_file_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* Who changes something does not know who waits for it. */
static void
join_wakes(struct services *s)
{
	wake_join(&s->wake, server_wake, s->server);
	wake_join(&s->changed, server_tell, s->server);
}

static enum err
build_workers(struct setup *u)
{
	const unsigned asked = u->s.fixed->worker_threads;
	const unsigned workers = asked ? asked : cpu_count();
	enum err e = worker_pool_new(&u->s.pool, workers < 2 ? 2 : workers);

	if (!e)
		e = worker_pool_new_behind(&u->s.slow, SLOW_THREADS, SLOW_BY);
	if (!e)
		e = worker_pool_new(&u->s.aside, 1);
	return e ? e : usage_watch_new(&u->s.usage);
}

static enum err
build(struct setup *u, struct why *why)
{
	const struct config *c = u->s.fixed;
	uint8_t task_key[32];

	raise_file_limit();
	enum err e = take_lock(u, why);
	/* Before anything long: who waits for a port does not read the whole spool each time. */
	if (!e)
		e = server_try(c, why);
	if (!e)
		e = health_new(&u->s.health);
	if (!e)
		e = budget_new(&u->s.budget);
	if (!e)
		e = evalsets_new(&u->s.sets, u->s.config);
	if (!e)
		e = keys_load(c->state_dir, &u->s.ca, &u->s.sign_key, task_key, why);
	if (!e)
		e = check_pinned(&u->s, NULL, c, why);
	if (!e)
		e = open_storage(u, why);
	if (!e)
		e = spent_new(&u->s.spent);
	if (!e)
		e = spent_load(u->s.spent, u->s.store, why);
	if (!e)
		e = walks_new(&u->s.walks);
	if (!e)
		e = store_write(u->s.store, settle_task_key, task_key, why);
	if (!e)
		e = audit_new(&u->s.audit, &u->s);
	if (!e)
		e = age_new(&u->s.age, &u->s, u->s.store, why);
	if (!e)
		e = build_workers(u);
	if (!e)
		e = store_write(u->s.store, settle_names, &u->s, why);
	if (!e)
		e = registry_new(&u->s.registry, u->s.store, why);
	if (!e)
		e = certificates_begin(&u->s, why);
	if (!e)
		e = jobs_new(&u->s.engine, &u->s, task_key, why);
	FAULT("start.engine");
	if (!e)
		e = leftovers_settle(&u->s, why);
	FAULT("start.models");
	hash_wipe(task_key, sizeof(task_key));
	if (!e)
		e = folder_new(&u->s.folder, &u->s, why);
	if (!e)
		e = server_new(&u->s.server, &u->s, &routes, why);
	if (!e)
		join_wakes(&u->s);
	if (!e)
		e = watch_new(&u->watch, &u->s, why);
	return e;
}

enum err
setup_new(struct setup **out, const struct config *config, struct answers *answers, struct why *why)
{
	struct setup *u = calloc(1, sizeof(*u));

	if (!u)
		return err_set(why, ERR_NOMEM, "no memory");
	u->lock_fd = -1;
	u->stop.sees_signals = true;
	u->s.stop = &u->stop;
	u->s.answers = answers;
	u->s.started_at = clock_wall();
	u->s.started = clock_seconds();
	enum err e = use_first_config(u, config, why);
	if (!e)
		e = build(u, why);
	if (e) {
		setup_free(u);
		return e;
	}
	*out = u;
	return ERR_OK;
}

/* Writes a port to a file, so that scripts find a coordinator with port 0. A failure, as on a full disk, does not prevent the start. */
static void
write_port(const struct setup *u, const char *name, uint16_t port)
{
	char path[CONFIG_PATH_MAX + 16], text[16];
	struct why why = {""};

	state_path(u, name, path, sizeof(path));
	int n = snprintf(text, sizeof(text), "%u\n", port);
	enum err e = file_write(path, text, (size_t)n, 0644, &why);
	if (e)
		log_event(LOG_LEVEL_ERROR, "port.failed", LOG_S("why", why.text));
	health_note(u->s.health, e, 0, why.text);
}

enum err
setup_start(struct setup *u, struct why *why)
{
	/* Rounds first: a delta that came before its round runs would be refused for good. */
	rounds_start(u->s.engine, folder_submit, u->s.folder);
	FAULT("start.rounds");
	enum err e = store_submit(u->s.store, append_start, appended, &u->s);
	if (!e)
		e = server_start(u->s.server, why);
	u->started = !e;
	if (!e && server_probe_port(u->s.server))
		write_port(u, "probe_port", server_probe_port(u->s.server));
	if (!e)
		write_port(u, "port", server_port(u->s.server));
	return e;
}

const struct services *
setup_services(const struct setup *u)
{
	return &u->s;
}

void
setup_warn(const struct setup *u)
{
	double days = ((double)u->s.certificate_ends - clock_wall()) / 86400;

	if (days < CERTIFICATE_DAYS)
		log_event(LOG_LEVEL_WARN, "certificate.ends", LOG_D("days", days),
		    LOG_S("why",
			days < 0 ? "devices refuse this coordinator"
				 : "give all names to \"rivuletd init --name\" and reload"));
}

/* The name of a setting that differs and that a running coordinator cannot change; NULL: there is none. */
static const char *
fixed_difference(const struct config *a, const struct config *b)
{
	if (strcmp(a->state_dir, b->state_dir) != 0)
		return "state_dir";
	if (strcmp(a->admin_socket, b->admin_socket) != 0)
		return "admin_socket";
	if (a->listen_count != b->listen_count ||
	    memcmp(a->listen, b->listen, sizeof(a->listen)) != 0)
		return "listen";
	if (memcmp(&a->probe, &b->probe, sizeof(a->probe)) != 0)
		return "probe_listen";
	if (a->io_threads != b->io_threads || a->worker_threads != b->worker_threads)
		return "io_threads or worker_threads";
	if (a->spool_memory != b->spool_memory || strcmp(a->spool_path, b->spool_path) != 0 ||
	    strcmp(a->spool_key_file, b->spool_key_file) != 0)
		return "[spool] mode, path or key_file";
	return a->spool_quota != b->spool_quota ? "[spool] quota" : NULL;
}

static void
say_ca_changed(struct setup *u)
{
	const struct services_ca *ca = shared_take(u->s.ca);

	log_event(LOG_LEVEL_INFO, "ca.changed", LOG_U("generation", ca->generation),
	    LOG_S("rotating", ca->rotating ? "yes" : "no"));
	shared_give(u->s.ca, ca);
	if (store_submit(u->s.store, append_ca, appended, &u->s))
		log_event(LOG_LEVEL_ERROR, "audit.failed", LOG_S("why", "no memory"));
}

enum err
setup_reload(struct setup *u, const struct config *config, struct why *why)
{
	const char *fixed = fixed_difference(u->s.fixed, config);
	struct certificates fresh;

	/* What can fail comes first: a faulty file changes nothing. */
	enum err e = certificates_load(&u->s, &fresh, why);
	if (e)
		return e;
	e = check_pinned(&u->s, fresh.ca, config, why);
	if (e) {
		certificates_drop(&fresh);
		return e;
	}
	struct config *copy = copy_config(config);
	if (!copy || shared_reserve(u->s.config)) {
		free(copy);
		certificates_drop(&fresh);
		return err_set(why, ERR_NOMEM, "no memory");
	}
	shared_replace(u->s.config, copy);
	if (certificates_use(&u->s, &fresh))
		say_ca_changed(u);
	/* A smaller [retention] frees its models at once: on a full disk that is what it is for. */
	e = retention_pass(u->s.engine);
	if (e)
		log_event(LOG_LEVEL_WARN, "retention.failed", LOG_S("why", err_name(e)));
	if (fixed)
		log_event(LOG_LEVEL_WARN, "reload.ignored", LOG_S("key", fixed),
		    LOG_S("why", "this takes effect after a restart"));
	return ERR_OK;
}

void
setup_free(struct setup *u)
{
	if (!u)
		return;
	stop_ask(&u->stop);
	watch_stop(u->watch);
	if (u->s.engine)
		rounds_stop(u->s.engine);
	if (u->started)
		server_stop(u->s.server, STOP_MS);
	folder_free(u->s.folder);
	worker_pool_free(u->s.aside);
	worker_pool_free(u->s.slow);
	worker_pool_free(u->s.pool);
	if (u->s.registry)
		registry_flush(u->s.registry, u->s.store);
	audit_free(u->s.audit);
	age_stop(u->s.age);
	store_close(u->s.store);
	age_free(u->s.age);
	server_free(u->s.server);
	jobs_free(u->s.engine);
	spent_free(u->s.spent);
	walks_free(u->s.walks);
	registry_free(u->s.registry);
	archive_close(u->s.archive);
	spool_close(u->s.spool);
	models_close(u->s.models);
	watch_free(u->watch);
	usage_watch_free(u->s.usage);
	reserve_free(u->s.reserve);
	health_free(u->s.health);
	evalsets_free(u->s.sets);
	budget_free(u->s.budget);
	shared_free(u->s.tls);
	keys_free(&u->s.ca, &u->s.sign_key);
	if (u->s.config)
		shared_give(u->s.config, u->s.fixed);
	shared_free(u->s.config);
	if (u->lock_fd >= 0)
		close(u->lock_fd);
	free(u);
}
