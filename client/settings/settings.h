#ifndef SETTINGS_H
#define SETTINGS_H
#include <limits.h>
#include <stdbool.h>

#include "address.h"
#include "data_source.h"
#include "gate.h"
#include "hours.h"
#include "ini.h"
#include "line.h"
#include "recipe.h"
#include "shard.h"

/*
 * The owner's settings, read by a table for ini.h. Every key is known, typed and range-checked; docs/devices.md
 * lists every key.
 */
#define SETTINGS_DATA_MAX 32
#define SETTINGS_TRAINERS_MAX 16
#define SETTINGS_URLS_MAX 8
#define SETTINGS_TEXT_MAX GATE_TEXT_MAX
#define SETTINGS_WORDS_MAX 1000

/* Which part of a failed task's log the coordinator gets. */
enum settings_log { SETTINGS_LOG_REASON, SETTINGS_LOG_TAIL, SETTINGS_LOG_NO };

/* [data NAME] */
struct settings_data {
	char name[RECIPE_NAME_MAX];
	struct data_source source;
	uint64_t hand, glyph_count, seed;
	double skew; /* glyphs */
	struct shard shard;
	struct gate gate;
};

/* [trainer NAME] */
struct settings_trainer {
	char name[RECIPE_NAME_MAX];
	char exec[SETTINGS_TEXT_MAX];
	double grace_s; /* seconds between SIGTERM and SIGKILL */
	bool persistent; /* started once, for many tasks */
	/* Of a persistent trainer: seconds that it may run without a task; 0: for ever. */
	double idle_exit_s;
	bool share_jobs; /* a persistent trainer may keep running when the job changes */
	unsigned kinds; /* kinds of tasks that it does: settings_trainer_does */
	uint64_t memory_bytes; /* the trainer is killed with more; 0: no limit */
	bool free; /* not confined: the trainer may do what the agent's user may */
	char environment[SETTINGS_WORDS_MAX]; /* words: NAME (the agent's value) or NAME=VALUE */
	char read[SETTINGS_WORDS_MAX], write[SETTINGS_WORDS_MAX]; /* paths */
	struct gate gate;
};

enum settings_link { SETTINGS_LINK_AUTO, SETTINGS_LINK_METERED, SETTINGS_LINK_UNMETERED };

/* [eligibility]: when the device works. Zero, or "", limits nothing. */
struct settings_eligibility {
	bool mains; /* not on battery */
	uint64_t battery_min; /* percent, on battery */
	enum settings_link link; /* what is known of the link to the coordinator */
	bool metered_pauses; /* nothing large goes over a metered link */
	struct hours hours;
	uint64_t load_max; /* percent of the processors that others may use */
	double temperature_max; /* degrees Celsius */
	uint64_t upload_per_day, download_per_day; /* bytes */
	char check[SETTINGS_TEXT_MAX]; /* a program and its words */
};

struct settings {
	char file[PATH_MAX]; /* where it came from, "" for defaults alone */
	char urls[SETTINGS_URLS_MAX][ADDRESS_MAX];
	size_t url_count;
	char mirror[ADDRESS_MAX];
	double mirror_timeout; /* seconds */
	/* Of the built-in trainer, and OMP_NUM_THREADS of others; 0: all processors, and not set. */
	uint64_t threads;
	enum line_format log_format; /* of the agent */
	char metrics_file[SETTINGS_TEXT_MAX]; /* absolute; "": none */
	enum settings_log send_log;
	uint64_t model_bytes, memory_bytes, cache_bytes, outbox_bytes, residual_bytes, kept_bytes,
	    examples_bytes;
	uint64_t epochs; /* 0: no limit */
	double seconds_per_round; /* 0: no limit */
	struct settings_eligibility eligibility;
	struct settings_data data[SETTINGS_DATA_MAX];
	size_t data_count;
	struct settings_trainer trainers[SETTINGS_TRAINERS_MAX];
	size_t trainer_count;
	struct ini_warnings warnings; /* for the program to show */
	struct ini_notes notes; /* where in the files the values stand */
};

/* Reads FILE (`config`, or home/rivulet.conf, which may be absent) and the .conf files in FILE.d. The caller frees *out. */
ERR_MUST_USE enum err settings_load(
    struct settings **out, const char *home, const char *config, struct why *why);
/* settings_load that reports every mistake to tell->mistake, not the first alone. */
ERR_MUST_USE enum err settings_examine(struct settings **out, const char *home, const char *config,
    const struct ini_notes *tell, struct why *why);
/* settings_load from a text in memory; errors call the text `name`. */
ERR_MUST_USE enum err settings_parse(
    struct settings **out, const char *name, const char *text, size_t len, struct why *why);
void settings_free(struct settings *s);
/* The table, for ini_list. */
const struct ini_section *settings_sections(void);

/* Where the settings name the files of data set *d: "FILE:LINE: data NAME.path: ", or another key; "" if no settings file
 * names them. */
const char *settings_data_place(const struct settings *s, const struct settings_data *d);
/* Is there a rule of [eligibility] that limits something? */
bool settings_has_rules(const struct settings *s);
const struct settings_data *settings_find_data(const struct settings *s, const char *name);
const struct settings_trainer *settings_find_trainer(const struct settings *s, const char *name);
/* Puts a program in the place of the built-in trainer, and of one that the files name: for a command whose user says it, so not confined.
 * ERR_LIMIT. */
ERR_MUST_USE enum err settings_replace_builtin(
    struct settings *s, const char *exec, struct why *why);
/* Does the owner let the trainer do tasks of that kind ("train", "evaluate")? */
bool settings_trainer_does(const struct settings_trainer *t, const char *kind);

#endif
