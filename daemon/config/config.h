#ifndef CONFIG_H
#define CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data_source.h"
#include "err.h"
#include "ini.h"
#include "log.h"
#include "subnet.h"

/*
 * The coordinator's settings: a table for ini.h, which says how files are read. Every key is known, typed and range-checked;
 * docs/configuration.md lists every key.
 */
/* The default configuration file; a missing one counts as empty, because the package installs none. */
#define CONFIG_DEFAULT "/etc/rivulet/rivuletd.conf"
#define CONFIG_PATH_MAX 1024
#define CONFIG_LISTEN_MAX 8
#define CONFIG_DATA_MAX 64
#define CONFIG_PROXIES_MAX 16

struct config_listen {
	char host[256]; /* numeric address; "" for all addresses, IPv4 and IPv6 */
	uint16_t port; /* 0: any free port, written to <state_dir>/port */
};

/* [data NAME]: a data set of the coordinator's own, for evaluation. */
struct config_data {
	char name[64];
	struct data_source source;
	uint64_t seed; /* glyphs */
	uint32_t first_hand, hands, count; /* glyphs: default 1000000, 50, 2000 */
};

struct config {
	/* [server] */
	/* listen = HOST:PORT, [V6]:PORT or PORT; default 7443. */
	struct config_listen listen[CONFIG_LISTEN_MAX];
	size_t listen_count;
	struct subnet proxies[CONFIG_PROXIES_MAX]; /* proxy_from = ADDRESS[/BITS]; default none */
	size_t proxy_count;
	char state_dir[CONFIG_PATH_MAX]; /* state_dir, default /var/lib/rivulet */
	/* admin_socket, default /run/rivulet/admin.sock; "off" turns it off (then ""). */
	char admin_socket[CONFIG_PATH_MAX];
	/* probe_listen = off (then host is ""): plain HTTP, loopback only. */
	struct config_listen probe;
	unsigned io_threads; /* io_threads, default 0 = one per core */
	unsigned worker_threads; /* worker_threads, default 0 = one per core, at least 2 */
	enum log_level log_level; /* log_level */
	enum line_format log_format; /* log_format = text | json */
	bool log_requests; /* log_requests = no: answers that are no refusals at level info */
	/* reserve = 64M: of the disk, for administration when it is full; 0 = none. */
	uint64_t reserve;
	/* [limits] */
	uint32_t connections; /* connections = 10000 */
	uint32_t header_bytes; /* header_bytes = 32K */
	uint32_t json_bytes; /* json_bytes = 1M */
	uint64_t model_bytes; /* model_bytes = 4G: largest model file taken or made */
	/* Limits of one evaluation by the coordinator: */
	uint64_t evaluation_bytes; /* evaluation_bytes = 1G: memory; 0: no limit */
	uint64_t evaluation_threads; /* evaluation_threads = auto: 0, one per processor */
	uint64_t evaluation_work; /* evaluation_work = 16G: multiply-adds of a batch; 0: no limit */
	/* work_bytes = auto: 0; memory for all folds and evaluations together. */
	uint64_t work_bytes;
	uint64_t fold_work; /* fold_work = 4096G: operations of one round's fold; 0: no limit */
	uint32_t header_timeout_s; /* header_timeout = 10 */
	uint32_t idle_timeout_s; /* idle_timeout = 75 */
	uint32_t slow_upload_bytes; /* slow_upload_bytes = 1K: least bytes per second ... */
	uint32_t slow_upload_s; /* slow_upload_time = 60: ... over this many seconds */
	uint32_t long_poll_s; /* long_poll = 50 */
	uint32_t handshakes; /* handshakes = 256: TLS handshakes in flight */
	uint32_t handshakes_per_address; /* handshakes_per_address = 2: in a crowd */
	uint32_t requests_per_minute; /* requests_per_minute = 12000, per identity; 0 = no limit */
	uint64_t output_bytes; /* output_bytes = 16M: answers that an identity has not yet read */
	uint32_t connections_per_device; /* connections_per_device = 64, per identity */
	/* strangers_cpu = 30: percent of a handshake thread's time for unauthenticated peers; 100 = no limit. */
	uint32_t strangers_cpu;
	/* Limits of one owner; 0 means no limit, except for owner_priority. */
	uint32_t owner_jobs; /* owner_jobs = 1000: jobs that have not ended */
	uint64_t owner_model_bytes; /* owner_model_bytes = 256G: models uploaded, and of its jobs */
	uint64_t owner_document_bytes; /* owner_document_bytes = 16M: memory of jobs not ended */
	uint64_t owner_evaluation; /* owner_evaluation = 64G: sum of evaluation_work of its jobs */
	uint64_t owner_fold_work; /* owner_fold_work = 16384G: sum of fold_work of its jobs */
	uint32_t owner_priority; /* owner_priority = 0: the highest that a job may have */
	uint32_t owner_share; /* owner_share = 1: the largest that a job may have */
	uint32_t owner_changes_per_hour; /* owner_changes_per_hour = 1000 */
	/* owner_bytes_per_day = 50M: of the database; and of the log. */
	uint64_t owner_bytes_per_day;
	uint32_t retry_after_s; /* retry_after = 5: what a device without work is told */
	/* retry_after_suspended = 60: what a suspended device is told */
	uint32_t retry_after_suspended_s;
	/* [spool] */
	uint64_t spool_quota; /* quota = 0: bytes, 0 = no limit */
	bool spool_memory; /* mode = durable | memory */
	char spool_path[CONFIG_PATH_MAX]; /* path: the spool's folder; "" = state_dir/spool */
	char spool_key_file[CONFIG_PATH_MAX]; /* key_file: 32 bytes or 64 hex digits; "" = none */
	/* part_time = 1h: then a broken upload that nobody resumes is removed. */
	uint64_t spool_part_s;
	/* [retention] */
	uint32_t keep_last; /* keep_last = 3 models */
	uint32_t keep_every; /* keep_every = 10; 0 = none */
	bool keep_deltas; /* keep_deltas = no: keep deltas of ended rounds in kept/ */
	uint64_t keep_deltas_bytes; /* keep_deltas_bytes = 16G: the oldest go first; 0: no limit */
	/* ended_jobs = 0: so long after its end a job is deleted; 0: never. */
	uint64_t ended_jobs_s;
	/* [audit] */
	uint32_t audit_refusals_s; /* refusals = 600: seconds between entries that count refusals */
	/* [metrics] */
	bool metrics_plain; /* plain = no: /metrics on probe_listen, too */
	/* [identity] */
	char ca[65]; /* ca: SHA-256 of the only CA certificate that is accepted, hex; "" = any */
	uint64_t device_validity_s; /* device_validity = 365d: of device certificates */
	/* rotate_every = 1h: time per key rotation after three; 0 = no limit. */
	uint64_t rotate_every_s;
	/* [data NAME] */
	struct config_data data[CONFIG_DATA_MAX];
	size_t data_count;
	struct ini_warnings warnings; /* for the log */
};

void config_defaults(struct config *c);
/* Sets the defaults, then reads path and path.d over them; *c is undefined after an error. */
ERR_MUST_USE enum err config_load(struct config *c, const char *path, struct why *why);
/* As config_load; notes gets the file and line of each value in *c, and is told of every mistake instead of the first alone. */
ERR_MUST_USE enum err config_examine(
    struct config *c, const char *path, struct ini_notes *notes, struct why *why);
/* As config_load, but from text in memory; file is the name for messages. */
ERR_MUST_USE enum err config_parse(
    struct config *c, const char *file, const char *text, size_t len, struct why *why);
/* The table of all settings, for ini_list. */
const struct ini_section *config_sections(void);
/* The [data NAME] section of this name; NULL if there is none. */
const struct config_data *config_data_find(const struct config *c, const char *name);

#endif
