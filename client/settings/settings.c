#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "identity.h"
#include "member.h"
#include "num.h"

#define SHARDS_MAX 1000000
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

/* --- what a value may be */

/* Its limits are thousandths. */
static enum err
set_real(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	double v, min = (double)k->min / 1000, max = (double)k->max / 1000;

	if (!num_double(value, &v) || v < min || v > max)
		return err_set(why, ERR_INVALID, "\"%.40s\" is not a number from %.10g to %.10g",
		    value, min, max);
	memcpy(field, &v, sizeof(v));
	return ERR_OK;
}

static enum err
set_shard(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	struct shard *at = field;
	char first[16];
	const char *slash = strchr(value, '/');
	uint64_t i, n;

	(void)k;
	if (!slash || (size_t)(slash - value) >= sizeof(first))
		return err_set(why, ERR_INVALID, "\"%.40s\" is not of the form 1/10", value);
	memcpy(first, value, (size_t)(slash - value));
	first[slash - value] = '\0';
	if (!num_u64(slash + 1, SHARDS_MAX, &n) || !num_u64(first, n, &i) || i < 1)
		return err_set(why, ERR_INVALID,
		    "\"%.40s\" is not of the form i/n, with n up to %d and i from 1 to n", value,
		    SHARDS_MAX);
	at->index = (uint32_t)i;
	at->count = (uint32_t)n;
	return ERR_OK;
}

/* Several, between commas or blanks. field is the count; the addresses are reached from it. */
static enum err
set_urls(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	struct settings *s = (struct settings *)(void *)((char *)field - k->offset);
	char word[2 * ADDRESS_MAX];

	if (!*value)
		return err_set(why, ERR_INVALID, "has no value");
	for (const char *p = value + strspn(value, ", \t"); *p; p += strspn(p, ", \t")) {
		size_t len = strcspn(p, ", \t");
		if (s->url_count == SETTINGS_URLS_MAX)
			return err_set(why, ERR_LIMIT, "more than %d addresses", SETTINGS_URLS_MAX);
		if (len >= sizeof(word))
			return err_set(why, ERR_LIMIT, "address too long");
		snprintf(word, sizeof(word), "%.*s", (int)len, p);
		enum err e = address_normalise(s->urls[s->url_count], word, why);
		if (e)
			return e;
		s->url_count++;
		p += len;
	}
	return ERR_OK;
}

static enum err
set_mirror(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	(void)k;
	return *value ? address_mirror(field, value, why)
		      : err_set(why, ERR_INVALID, "has no value");
}

static enum err
set_hours(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	(void)k;
	return hours_parse(field, value, why);
}

/* Collectors read no other names. */
static enum err
set_metrics(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	const size_t len = strlen(value);

	if (*value != '/' || len < 7 || strcmp(value + len - 5, ".prom") != 0)
		return err_set(why, ERR_INVALID,
		    "\"%.60s\" is not the absolute path of a file that ends in .prom", value);
	return ini_text(k, field, value, why);
}

/* As tasks name them. */
static const char *const task_kinds[] = {"train", "evaluate"};
#define TASK_KINDS (sizeof(task_kinds) / sizeof(*task_kinds))

/* A bit for each word. */
static unsigned
kind_bit(const char *word, size_t len)
{
	for (unsigned i = 0; i < TASK_KINDS; i++)
		if (strlen(task_kinds[i]) == len && memcmp(task_kinds[i], word, len) == 0)
			return 1u << i;
	return 0;
}

static enum err
set_kinds(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	unsigned kinds = 0;

	(void)k;
	for (const char *p = value + strspn(value, ", \t"); *p; p += strspn(p, ", \t")) {
		size_t len = strcspn(p, ", \t");
		unsigned bit = kind_bit(p, len);
		if (!bit)
			return err_set(why, ERR_INVALID, "\"%.*s\" is not train or evaluate",
			    (int)(len < 40 ? len : 40), p);
		kinds |= bit;
		p += len;
	}
	if (kinds == 0)
		return err_set(why, ERR_INVALID, "has no value");
	memcpy(field, &kinds, sizeof(kinds));
	return ERR_OK;
}

/* --- the table */

#define LARGEST ((uint64_t)1000000000000000) /* bytes */

/* clang-format off */
/* The words of version 402de29's `split`. */
static const char *const splits[] = {[SHARD_IID] = "iid", [SHARD_LABEL] = "label", NULL};
static const char *const logs[] = {
    [SETTINGS_LOG_REASON] = "reason", [SETTINGS_LOG_TAIL] = "tail", [SETTINGS_LOG_NO] = "no", NULL};
static const char *const confines[] = {"yes", "no", NULL};
static const char *const powers[] = {"any", "mains", NULL};
static const char *const links[] = {[SETTINGS_LINK_AUTO] = "auto",
    [SETTINGS_LINK_METERED] = "metered", [SETTINGS_LINK_UNMETERED] = "unmetered", NULL};
static const char *const metered_words[] = {"allow", "pause", NULL};
static const char *const autos[] = {"auto", NULL};
static const char *const noes[] = {"no", "yes", NULL};

static const struct ini_key coordinator_keys[] = {
    {"url", set_urls, MEMBER(settings, url_count), .many = true},
    {"model_mirror", set_mirror, MEMBER(settings, mirror), .fallback = NULL},
    {"mirror_timeout", set_real, MEMBER(settings, mirror_timeout), 1000, 3600000, .fallback = "60"},
    {.name = NULL},
};
static const struct ini_key device_keys[] = {
    {"threads", ini_number, MEMBER(settings, threads), 0, 1024, .words = autos},
    {"log_format", ini_choice, MEMBER(settings, log_format), .fallback = "text", .words = line_formats},
    {"metrics_file", set_metrics, MEMBER(settings, metrics_file), .fallback = NULL},
    {"send_log", ini_choice, MEMBER(settings, send_log), .words = logs},
    {.name = NULL},
};
static const struct ini_key limits_keys[] = {
    {"model_bytes", ini_bytes, MEMBER(settings, model_bytes), 1024, LARGEST, .fallback = "1G"},
    {"memory_bytes", ini_bytes, MEMBER(settings, memory_bytes), 1 << 20, LARGEST, .fallback = NULL},
    {"cache_bytes", ini_bytes, MEMBER(settings, cache_bytes), 1024, LARGEST, .fallback = "2G"},
    {"outbox_bytes", ini_bytes, MEMBER(settings, outbox_bytes), 1024, LARGEST, .fallback = "2G"},
    {"residual_bytes", ini_bytes, MEMBER(settings, residual_bytes), 1024, LARGEST, .fallback = "2G"},
    {"kept_bytes", ini_bytes, MEMBER(settings, kept_bytes), 0, LARGEST, .fallback = "256M"},
    {"examples_bytes", ini_bytes, MEMBER(settings, examples_bytes), 1024, LARGEST, .fallback = "4G"},
    {"seconds_per_round", set_real, MEMBER(settings, seconds_per_round), 1, 10000000000, .fallback = NULL},
    {"epochs", ini_number, MEMBER(settings, epochs), 1, 1000000, .fallback = NULL},
    {.name = NULL},
};
static const struct ini_key eligibility_keys[] = {
    {"power", ini_choice, MEMBER(settings, eligibility.mains), .words = powers},
    {"battery_min", ini_number, MEMBER(settings, eligibility.battery_min), 0, 100, .fallback = NULL},
    {"link", ini_choice, MEMBER(settings, eligibility.link), .words = links},
    {"metered", ini_choice, MEMBER(settings, eligibility.metered_pauses), .words = metered_words},
    {"hours", set_hours, MEMBER(settings, eligibility.hours), .fallback = NULL},
    {"load_max", ini_number, MEMBER(settings, eligibility.load_max), 1, 100, .fallback = NULL},
    {"temperature_max", set_real, MEMBER(settings, eligibility.temperature_max), 1000, 150000, .fallback = NULL},
    {"upload_per_day", ini_bytes, MEMBER(settings, eligibility.upload_per_day), 1024, LARGEST, .fallback = NULL},
    {"download_per_day", ini_bytes, MEMBER(settings, eligibility.download_per_day), 1024, LARGEST, .fallback = NULL},
    {"check", ini_text, MEMBER(settings, eligibility.check), .fallback = NULL, .quotes = true},
    {.name = NULL},
};
static const struct ini_key data_keys[] = {
    DATA_SOURCE_KEYS(settings_data),
    {"hand", ini_number, MEMBER(settings_data, hand), 0, LARGEST * 9, .forms = DATA_IN(DATA_GLYPHS)},
    {"count", ini_number, MEMBER(settings_data, glyph_count), 1, 10000000, .fallback = "600", .forms = DATA_IN(DATA_GLYPHS)},
    {"skew", set_real, MEMBER(settings_data, skew), 0, 1000, .forms = DATA_IN(DATA_GLYPHS)},
    {"seed", ini_number, MEMBER(settings_data, seed), 0, LARGEST * 9, .fallback = "1"},
    {"shard", set_shard, MEMBER(settings_data, shard), .fallback = "1/1"},
    {"partition", ini_choice, MEMBER(settings_data, shard.partition), .words = shard_partition_names},
    {"split", ini_choice, MEMBER(settings_data, shard.partition), .words = splits, .now = "partition"},
    {"alpha", set_real, MEMBER(settings_data, shard.alpha), 1, 1000000, .fallback = "0.5"},
    {"column", ini_text, MEMBER(settings_data, shard.column), .fallback = NULL, .forms = DATA_IN(DATA_CSV) | DATA_IN(DATA_PACKED)},
    {"allow_jobs", ini_text, MEMBER(settings_data, gate.allow), .fallback = NULL},
    {"deny_jobs", ini_text, MEMBER(settings_data, gate.deny), .fallback = NULL},
    {.name = NULL},
};
static const struct ini_key trainer_keys[] = {
    {"exec", ini_text, MEMBER(settings_trainer, exec), .needs = 1, .quotes = true},
    {"grace_s", set_real, MEMBER(settings_trainer, grace_s), 100, 86400000, .fallback = "30"},
    {"kinds", set_kinds, MEMBER(settings_trainer, kinds), .fallback = "train"},
    {"persistent", ini_choice, MEMBER(settings_trainer, persistent), .words = noes},
    {"idle_exit_s", set_real, MEMBER(settings_trainer, idle_exit_s), 0, 86400000, .fallback = NULL},
    {"share_jobs", ini_choice, MEMBER(settings_trainer, share_jobs), .words = noes},
    {"memory_bytes", ini_bytes, MEMBER(settings_trainer, memory_bytes), 1 << 20, LARGEST, .fallback = NULL},
    {"confine", ini_choice, MEMBER(settings_trainer, free), .words = confines},
    {"env", ini_text, MEMBER(settings_trainer, environment), .fallback = NULL, .quotes = true},
    {"read", ini_text, MEMBER(settings_trainer, read), .fallback = NULL, .quotes = true},
    {"write", ini_text, MEMBER(settings_trainer, write), .fallback = NULL, .quotes = true},
    {"allow_jobs", ini_text, MEMBER(settings_trainer, gate.allow), .fallback = NULL},
    {"deny_jobs", ini_text, MEMBER(settings_trainer, gate.deny), .fallback = NULL},
    {.name = NULL},
};
/* clang-format on */

/* --- sections with names */

static bool
is_name(const char *name, struct why *why)
{
	if (*name && strlen(name) < RECIPE_NAME_MAX && !name[strspn(name, NAME_CHARS)])
		return true;
	err_set(why, ERR_INVALID, "unknown section: a name has 1 to %d letters, digits, _ . -",
	    RECIPE_NAME_MAX - 1);
	return false;
}

static void *
open_data(void *out, const char *name, struct why *why)
{
	struct settings *s = out;

	if (!is_name(name, why))
		return NULL;
	if (s->data_count == SETTINGS_DATA_MAX) {
		err_set(why, ERR_LIMIT, "more than %d data sets", SETTINGS_DATA_MAX);
		return NULL;
	}
	struct settings_data *d = &s->data[s->data_count++];
	strcpy(d->name, name);
	return d;
}

static void *
open_trainer(void *out, const char *name, struct why *why)
{
	struct settings *s = out;

	if (!is_name(name, why))
		return NULL;
	if (s->trainer_count == SETTINGS_TRAINERS_MAX) {
		err_set(why, ERR_LIMIT, "more than %d trainers", SETTINGS_TRAINERS_MAX);
		return NULL;
	}
	struct settings_trainer *t = &s->trainers[s->trainer_count++];
	strcpy(t->name, name);
	return t;
}

static unsigned
data_form(const void *fields)
{
	return DATA_IN(((const struct settings_data *)fields)->source.format);
}

/* Which partitions go with which data. */
static const char *
partition_check(const struct settings_data *d)
{
	bool classes = shard_needs(d->shard.partition) == SHARD_NEEDS_CLASSES;

	if (classes && d->source.regression)
		return "by classes does not go with kind = regression";
	if (d->source.format == DATA_TEXT && d->shard.partition != SHARD_IID)
		return "of a text is iid: a shard is a stretch of it";
	if (d->shard.partition == SHARD_COLUMN && d->source.format == DATA_CSV && !*d->shard.column)
		return "by column needs a column";
	if (d->shard.partition == SHARD_COLUMN && d->source.format != DATA_CSV &&
	    d->source.format != DATA_PACKED)
		return "by column goes with csv and packed only";
	return NULL;
}

static const char *
data_check(void *fields, const char **key)
{
	struct settings_data *d = fields;
	const char *wrong = data_source_check(&d->source, key);

	d->shard.seed = d->seed;
	if (wrong)
		return wrong;
	*key = "partition";
	return partition_check(d);
}

static const struct ini_section sections[] = {
    {.name = "coordinator", .keys = coordinator_keys},
    {.name = "device", .keys = device_keys},
    {.name = "limits", .keys = limits_keys},
    {.name = "eligibility", .keys = eligibility_keys},
    {.name = "data", .keys = data_keys, .open = open_data, .form = data_form, .check = data_check},
    {.name = "trainer", .keys = trainer_keys, .open = open_trainer},
    {.name = NULL},
};

/* What an administrator says of the coordinator, in its own settings. */
static const struct ini_elsewhere of_coordinators[] = {
    {"listen", "[server] of the coordinator's rivuletd.conf"},
    {"state_dir", "[server] of the coordinator's rivuletd.conf"},
    {"admin_socket", "[server] of the coordinator's rivuletd.conf"},
    {"long_poll", "[limits] of the coordinator's rivuletd.conf"},
    {"retry_after", "[limits] of the coordinator's rivuletd.conf"},
    {"[server]", "the coordinator's rivuletd.conf"},
    {"[retention]", "the coordinator's rivuletd.conf"},
    {"[spool]", "the coordinator's rivuletd.conf"},
    {"[audit]", "the coordinator's rivuletd.conf"},
    {.name = NULL},
};

/* --- reading */

static struct settings *
new_settings(struct ini *ini, struct why *why)
{
	struct settings *s = calloc(1, sizeof(*s));

	if (!s)
		err_set(why, ERR_NOMEM, "no memory for settings");
	else
		*ini = (struct ini){.sections = sections,
		    .elsewhere = of_coordinators,
		    .out = s,
		    .dotted = true,
		    .warnings = &s->warnings,
		    .notes = &s->notes};
	return s;
}

static enum err
give(struct settings **out, struct settings *s, enum err e)
{
	if (e) {
		settings_free(s);
		return e;
	}
	if (s->model_bytes > s->cache_bytes)
		s->model_bytes = s->cache_bytes;
	*out = s;
	return ERR_OK;
}

enum err
settings_parse(
    struct settings **out, const char *name, const char *text, size_t len, struct why *why)
{
	struct ini ini;
	struct settings *s = new_settings(&ini, why);

	if (!s)
		return ERR_NOMEM;
	snprintf(s->file, sizeof(s->file), "%s", name);
	return give(out, s, ini_read(&ini, name, text, len, why));
}

enum err
settings_load(struct settings **out, const char *home, const char *config, struct why *why)
{
	return settings_examine(out, home, config, &(struct ini_notes){.mistake = NULL}, why);
}

enum err
settings_examine(struct settings **out, const char *home, const char *config,
    const struct ini_notes *tell, struct why *why)
{
	struct ini ini;
	struct settings *s = new_settings(&ini, why);
	enum err e = s ? ERR_OK : ERR_NOMEM;

	if (!e)
		s->notes = *tell;

	if (!e && config && strlen(config) >= sizeof(s->file))
		e = err_set(why, ERR_LIMIT, "path too long: %.100s...", config);
	if (e)
		return give(out, s, e);
	if (config)
		strcpy(s->file, config);
	else
		e = identity_path(s->file, home, "rivulet.conf", why);
	ini.optional = !config;
	if (!e)
		e = ini_load(&ini, s->file, why);
	if (!e && access(s->file, F_OK) != 0)
		s->file[0] = '\0';
	return give(out, s, e);
}

void
settings_free(struct settings *s)
{
	if (s)
		ini_notes_deinit(&s->notes);
	free(s);
}

bool
settings_has_rules(const struct settings *s)
{
	const struct settings_eligibility *e = &s->eligibility;

	return e->mains || e->battery_min || e->metered_pauses || e->hours.given || e->load_max ||
	    e->temperature_max > 0 || e->upload_per_day || e->download_per_day || *e->check;
}

const struct settings_data *
settings_find_data(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->data_count; i++)
		if (strcmp(s->data[i].name, name) == 0)
			return &s->data[i];
	return NULL;
}

const struct settings_trainer *
settings_find_trainer(const struct settings *s, const char *name)
{
	for (size_t i = 0; i < s->trainer_count; i++)
		if (strcmp(s->trainers[i].name, name) == 0)
			return &s->trainers[i];
	return NULL;
}

bool
settings_trainer_does(const struct settings_trainer *t, const char *kind)
{
	return (t->kinds & kind_bit(kind, strlen(kind))) != 0;
}

const char *
settings_data_place(const struct settings *s, const struct settings_data *d)
{
	const char *files[DATA_SOURCE_FILES];
	const void *field =
	    data_source_files(&d->source, files) ? (const void *)files[0] : &d->source.format;

	return ini_notes_place(&s->notes, field, INI_LAST);
}

const struct ini_section *
settings_sections(void)
{
	return sections;
}

enum err
settings_replace_builtin(struct settings *s, const char *exec, struct why *why)
{
	struct settings_trainer *t =
	    (struct settings_trainer *)(uintptr_t)settings_find_trainer(s, "builtin");

	if (!t)
		t = open_trainer(s, "builtin", why);
	if (!t)
		return ERR_LIMIT;
	if (strlen(exec) >= sizeof(t->exec))
		return err_set(why, ERR_LIMIT, "a program's line is too long");
	*t = (struct settings_trainer){.name = "builtin", .grace_s = 30, .free = true};
	strcpy(t->exec, exec);
	for (size_t i = 0; i < TASK_KINDS; i++)
		t->kinds |= kind_bit(task_kinds[i], strlen(task_kinds[i]));
	return ERR_OK;
}
