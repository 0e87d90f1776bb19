#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "endpoint.h"
#include "hex.h"
#include "ini.h"
#include "member.h"
#include "num.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* 0 stands for it. */
static enum err
set_bytes_or_auto(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	if (strcmp(value, "auto") != 0)
		return ini_bytes(k, field, value, why);
	memset(field, 0, k->size);
	return ERR_OK;
}

static enum err
set_seconds(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	uint64_t v;

	if (!num_seconds(value, &v) || v < k->min || v > k->max)
		return err_set(why, ERR_INVALID,
		    "\"%.40s\" is not a time from %" PRIu64 " to %" PRIu64
		    " seconds (s, m, h or d may follow the number)",
		    value, k->min, k->max);
	memcpy(field, &v, sizeof(v));
	return ERR_OK;
}

static enum err
set_text_or_off(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	if (strcmp(value, "off") != 0)
		return ini_text(k, field, value, why);
	*(char *)field = '\0';
	return ERR_OK;
}

static enum err
set_fingerprint(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	uint8_t hash[32];

	if (!hex_decode(hash, sizeof(hash), value, strlen(value)))
		return err_set(why, ERR_INVALID, "is not the 64 hex digits that init prints");
	return ini_text(k, field, value, why);
}

/* field is the count; the entries are reached from it because the table knows one offset. */
static enum err
set_listen(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	struct config *c = (struct config *)(void *)((char *)field - k->offset);

	if (c->listen_count == CONFIG_LISTEN_MAX)
		return err_set(why, ERR_LIMIT, "more than %d addresses", CONFIG_LISTEN_MAX);
	if (!endpoint_parse(value, &c->listen[c->listen_count]))
		return err_set(why, ERR_INVALID,
		    "\"%.60s\" is not ADDRESS:PORT, [IPV6-ADDRESS]:PORT or PORT", value);
	c->listen_count++;
	return ERR_OK;
}

static enum err
set_proxy(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	struct config *c = (struct config *)(void *)((char *)field - k->offset);

	if (c->proxy_count == CONFIG_PROXIES_MAX)
		return err_set(why, ERR_LIMIT, "more than %d ranges", CONFIG_PROXIES_MAX);
	if (!subnet_parse(&c->proxies[c->proxy_count], value))
		return err_set(why, ERR_INVALID, "\"%.60s\" is not ADDRESS or ADDRESS/BITS", value);
	c->proxy_count++;
	return ERR_OK;
}

/* Plain HTTP is for this host alone. */
static enum err
set_probe(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	struct config_listen *l = field;

	(void)k;
	memset(l, 0, sizeof(*l));
	if (strcmp(value, "off") == 0)
		return ERR_OK;
	if (!endpoint_parse(value, l) ||
	    !(strncmp(l->host, "127.", 4) == 0 || strcmp(l->host, "::1") == 0))
		return err_set(why, ERR_INVALID,
		    "\"%.60s\" is not 127.0.0.1:PORT, [::1]:PORT or off: it is plain HTTP", value);
	return ERR_OK;
}

#define KI ((uint64_t)1 << 10)
#define MI ((uint64_t)1 << 20)
#define GI ((uint64_t)1 << 30)
#define DAY 86400

/* clang-format off */
static const char *const modes[] = {"durable", "memory", NULL};
static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const levels[] = {
    [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARN] = "warn", [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug", NULL};

static const char *const autos[] = {"auto", NULL};
static const struct ini_key server_keys[] = {
    {"listen", set_listen, MEMBER(config, listen_count), .fallback = "7443", .many = true},
    {"state_dir", ini_text, MEMBER(config, state_dir), .fallback = "/var/lib/rivulet"},
    {"admin_socket", set_text_or_off, MEMBER(config, admin_socket), .fallback = "/run/rivulet/admin.sock"},
    {"proxy_from", set_proxy, MEMBER(config, proxy_count), .many = true},
    {"probe_listen", set_probe, MEMBER(config, probe), .fallback = "off"},
    {"io_threads", ini_number, MEMBER(config, io_threads), 0, 256, .fallback = "0"},
    {"worker_threads", ini_number, MEMBER(config, worker_threads), 0, 256, .fallback = "0"},
    {"log_level", ini_choice, MEMBER(config, log_level), .fallback = "info", .words = levels},
    {"log_format", ini_choice, MEMBER(config, log_format), .fallback = "text", .words = line_formats},
    {"log_requests", ini_choice, MEMBER(config, log_requests), .fallback = "no", .words = no_yes},
    {"reserve", ini_bytes, MEMBER(config, reserve), 0, 64 * GI, .fallback = "64M"},
    {.name = NULL},
};
static const struct ini_key limits_keys[] = {
    {"connections", ini_number, MEMBER(config, connections), 1, 1000000, .fallback = "10000"},
    {"header_bytes", ini_bytes, MEMBER(config, header_bytes), 2 * KI, 64 * KI, .fallback = "32K"},
    {"json_bytes", ini_bytes, MEMBER(config, json_bytes), 8 * KI, 64 * MI, .fallback = "1M"},
    {"model_bytes", ini_bytes, MEMBER(config, model_bytes), KI, 1024 * GI, .fallback = "4G"},
    {"evaluation_bytes", ini_bytes, MEMBER(config, evaluation_bytes), 0, 1024 * GI, .fallback = "1G"},
    {"evaluation_threads", ini_number, MEMBER(config, evaluation_threads), 0, 256, .fallback = "auto", .words = autos},
    {"evaluation_work", ini_bytes, MEMBER(config, evaluation_work), 0, 1024 * GI, .fallback = "16G"},
    {"work_bytes", set_bytes_or_auto, MEMBER(config, work_bytes), 64 * MI, 1024 * GI, .fallback = "auto"},
    {"fold_work", ini_bytes, MEMBER(config, fold_work), 0, INT64_MAX, .fallback = "4096G"},
    {"header_timeout", ini_number, MEMBER(config, header_timeout_s), 1, 600, .fallback = "10"},
    {"idle_timeout", ini_number, MEMBER(config, idle_timeout_s), 1, DAY, .fallback = "75"},
    {"slow_upload_bytes", ini_bytes, MEMBER(config, slow_upload_bytes), 1, GI, .fallback = "1K"},
    {"slow_upload_time", ini_number, MEMBER(config, slow_upload_s), 1, 3600, .fallback = "60"},
    {"long_poll", ini_number, MEMBER(config, long_poll_s), 1, 50, .fallback = "50"},
    {"handshakes", ini_number, MEMBER(config, handshakes), 1, 100000, .fallback = "256"},
    {"handshakes_per_address", ini_number, MEMBER(config, handshakes_per_address), 1, 100000, .fallback = "2"},
    {.name = "failures_per_minute"},
    {"requests_per_minute", ini_number, MEMBER(config, requests_per_minute), 0, 100000000, .fallback = "12000"},
    {"output_bytes", ini_bytes, MEMBER(config, output_bytes), 64 * KI, 1024 * GI, .fallback = "16M"},
    {"connections_per_device", ini_number, MEMBER(config, connections_per_device), 1, 1000000, .fallback = "64"},
    {"strangers_cpu", ini_number, MEMBER(config, strangers_cpu), 1, 100, .fallback = "30"},
    {"owner_jobs", ini_number, MEMBER(config, owner_jobs), 0, 4096, .fallback = "1000"},
    {"owner_model_bytes", ini_bytes, MEMBER(config, owner_model_bytes), 0, INT64_MAX, .fallback = "256G"},
    {"owner_document_bytes", ini_bytes, MEMBER(config, owner_document_bytes), 0, 1024 * GI, .fallback = "16M"},
    {"owner_evaluation", ini_bytes, MEMBER(config, owner_evaluation), 0, 1024 * GI, .fallback = "64G"},
    {"owner_fold_work", ini_bytes, MEMBER(config, owner_fold_work), 0, INT64_MAX, .fallback = "16384G"},
    {"owner_priority", ini_number, MEMBER(config, owner_priority), 0, 1000000, .fallback = "0"},
    {"owner_share", ini_number, MEMBER(config, owner_share), 1, 1000, .fallback = "1"},
    {"owner_changes_per_hour", ini_number, MEMBER(config, owner_changes_per_hour), 0, 1000000, .fallback = "1000"},
    {"owner_bytes_per_day", ini_bytes, MEMBER(config, owner_bytes_per_day), 0, 1024 * GI, .fallback = "50M"},
    {"retry_after", ini_number, MEMBER(config, retry_after_s), 1, DAY, .fallback = "5"},
    {"retry_after_suspended", ini_number, MEMBER(config, retry_after_suspended_s), 1, DAY, .fallback = "60"},
    {.name = NULL},
};
static const struct ini_key spool_keys[] = {
    {"quota", ini_bytes, MEMBER(config, spool_quota), 0, INT64_MAX, .fallback = "0"},
    {"mode", ini_choice, MEMBER(config, spool_memory), .fallback = "durable", .words = modes},
    {"path", ini_text, MEMBER(config, spool_path), .fallback = NULL},
    {"key_file", ini_text, MEMBER(config, spool_key_file), .fallback = NULL},
    {"part_time", set_seconds, MEMBER(config, spool_part_s), 1, 365 * DAY, .fallback = "1h"},
    {.name = NULL},
};
static const struct ini_key retention_keys[] = {
    {"keep_last", ini_number, MEMBER(config, keep_last), 1, 1000000, .fallback = "3"},
    {"keep_every", ini_number, MEMBER(config, keep_every), 0, 1000000, .fallback = "10"},
    {"keep_deltas", ini_choice, MEMBER(config, keep_deltas), .fallback = "no", .words = no_yes},
    {"keep_deltas_bytes", ini_bytes, MEMBER(config, keep_deltas_bytes), 0, INT64_MAX, .fallback = "16G"},
    {"ended_jobs", set_seconds, MEMBER(config, ended_jobs_s), 0, 36500ull * DAY, .fallback = "0"},
    {.name = NULL},
};
static const struct ini_key audit_keys[] = {
    {"refusals", ini_number, MEMBER(config, audit_refusals_s), 1, DAY, .fallback = "600"},
    {.name = NULL},
};
static const struct ini_key metrics_keys[] = {
    {"plain", ini_choice, MEMBER(config, metrics_plain), .fallback = "no", .words = no_yes},
    {.name = NULL},
};
static const struct ini_key identity_keys[] = {
    {"ca", set_fingerprint, MEMBER(config, ca), .fallback = NULL},
    {"device_validity", set_seconds, MEMBER(config, device_validity_s), 1, 36500ull * DAY, .fallback = "365d"},
    {"rotate_every", set_seconds, MEMBER(config, rotate_every_s), 0, 365 * DAY, .fallback = "1h"},
    {.name = NULL},
};
static const struct ini_key data_keys[] = {
    DATA_SOURCE_KEYS(config_data),
    {"seed", ini_number, MEMBER(config_data, seed), 0, UINT64_MAX, .fallback = "0", .forms = DATA_IN(DATA_GLYPHS)},
    {"first_hand", ini_number, MEMBER(config_data, first_hand), 0, 4000000000, .fallback = "1000000", .forms = DATA_IN(DATA_GLYPHS)},
    {"hands", ini_number, MEMBER(config_data, hands), 1, 1000000, .fallback = "50", .forms = DATA_IN(DATA_GLYPHS)},
    {"count", ini_number, MEMBER(config_data, count), 1, 10000000, .fallback = "2000", .forms = DATA_IN(DATA_GLYPHS)},
    {.name = NULL},
};
/* clang-format on */

const struct config_data *
config_data_find(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->data_count; i++) {
		if (strcmp(c->data[i].name, name) == 0)
			return &c->data[i];
	}
	return NULL;
}

static void *
open_data(void *out, const char *name, struct why *why)
{
	struct config *c = out;
	size_t len = strlen(name);
	struct config_data *d = &c->data[c->data_count];

	if (len == 0 || len >= sizeof(d->name) || strspn(name, NAME_CHARS) != len) {
		err_set(why, ERR_INVALID, "a name has 1 to %zu of the characters A-Z a-z 0-9 . _ -",
		    sizeof(d->name) - 1);
		return NULL;
	}
	if (c->data_count == CONFIG_DATA_MAX) {
		err_set(why, ERR_LIMIT, "more than %d data sets", CONFIG_DATA_MAX);
		return NULL;
	}
	memset(d, 0, sizeof(*d));
	memcpy(d->name, name, len + 1);
	c->data_count++;
	return d;
}

static unsigned
data_form(const void *fields)
{
	return DATA_IN(((const struct config_data *)fields)->source.format);
}

static const char *
data_check(void *fields, const char **key)
{
	const struct config_data *d = fields;

	*key = "format";
	if (d->source.format == DATA_EXTERNAL)
		return "is one that only a device's trainer reads";
	return data_source_check(&d->source, key);
}

static const struct ini_section sections[] = {
    {.name = "server", .keys = server_keys},
    {.name = "limits", .keys = limits_keys},
    {.name = "spool", .keys = spool_keys},
    {.name = "retention", .keys = retention_keys},
    {.name = "audit", .keys = audit_keys},
    {.name = "metrics", .keys = metrics_keys},
    {.name = "identity", .keys = identity_keys},
    {.name = "data",
	.keys = data_keys,
	.open = open_data,
	.once = true,
	.form = data_form,
	.check = data_check},
    {.name = NULL},
};

/* What an owner says of a device, in that device's settings. */
static const struct ini_elsewhere of_devices[] = {
    {"shard", "[data NAME] of a device's rivulet.conf"},
    {"partition", "[data NAME] of a device's rivulet.conf"},
    {"alpha", "[data NAME] of a device's rivulet.conf"},
    {"exec", "[trainer NAME] of a device's rivulet.conf"},
    {"threads", "[device] of a device's rivulet.conf"},
    {"memory_bytes", "[limits] of a device's rivulet.conf"},
    {"seconds_per_round", "[limits] of a device's rivulet.conf"},
    {"[device]", "a device's rivulet.conf"},
    {"[trainer]", "a device's rivulet.conf"},
    {"[eligibility]", "a device's rivulet.conf"},
    {"[coordinator]", "a device's rivulet.conf"},
    {.name = NULL},
};

static struct ini
table(struct config *c)
{
	memset(c, 0, sizeof(*c));
	return (struct ini){
	    .sections = sections, .elsewhere = of_devices, .out = c, .warnings = &c->warnings};
}

enum err
config_parse(struct config *c, const char *file, const char *text, size_t len, struct why *why)
{
	const struct ini ini = table(c);

	return ini_read(&ini, file, text, len, why);
}

void
config_defaults(struct config *c)
{
	enum err e = config_parse(c, "", "", 0, NULL);
	(void)e; /* Nothing was read that could be wrong. */
}

enum err
config_examine(struct config *c, const char *path, struct ini_notes *notes, struct why *why)
{
	struct ini ini = table(c);

	ini.notes = notes;
	ini.optional = strcmp(path, CONFIG_DEFAULT) == 0;
	return ini_load(&ini, path, why);
}

enum err
config_load(struct config *c, const char *path, struct why *why)
{
	return config_examine(c, path, NULL, why);
}

const struct ini_section *
config_sections(void)
{
	return sections;
}
