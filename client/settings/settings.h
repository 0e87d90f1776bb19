#ifndef SETTINGS_H
#define SETTINGS_H
#include <limits.h>
#include <stdbool.h>

#include "address.h"
#include "gate.h"
#include "ini.h"
#include "recipe.h"
#include "shard.h"

/*
 * The owner's settings: a table for ini.h, which says how files are read. Every key is known, typed and range-checked; docs/devices.md
 * lists every key.
 */
#define SETTINGS_DATA_MAX 32
#define SETTINGS_TRAINERS_MAX 16
#define SETTINGS_URLS_MAX 8
#define SETTINGS_TEXT_MAX GATE_TEXT_MAX

enum settings_format { SETTINGS_GLYPHS, SETTINGS_IDX, SETTINGS_CSV };

/* [data NAME] */
struct settings_data {
	char name[RECIPE_NAME_MAX];
	enum settings_format format;
	char images[SETTINGS_TEXT_MAX], labels[SETTINGS_TEXT_MAX]; /* idx */
	char path[SETTINGS_TEXT_MAX], label[SETTINGS_TEXT_MAX]; /* csv */
	bool regression; /* csv */
	char classes[SETTINGS_TEXT_MAX]; /* names, comma separated */
	uint64_t hand, glyph_count, seed;
	double skew; /* glyphs */
	struct shard shard;
	struct gate gate;
};

/* [trainer NAME] */
struct settings_trainer {
	char name[RECIPE_NAME_MAX];
	char exec[SETTINGS_TEXT_MAX];
	double grace_s; /* between asking it to finish and killing it */
	struct gate gate;
};

struct settings {
	char file[PATH_MAX]; /* where it came from, "" for defaults alone */
	char urls[SETTINGS_URLS_MAX][ADDRESS_MAX];
	size_t url_count;
	char mirror[ADDRESS_MAX];
	double mirror_timeout; /* seconds */
	uint64_t threads; /* for external trainers: OMP_NUM_THREADS; 0: theirs to choose */
	uint64_t model_bytes, memory_bytes, cache_bytes, outbox_bytes, residual_bytes;
	uint64_t epochs; /* 0: no limit */
	double seconds_per_round; /* 0: no limit */
	struct settings_data data[SETTINGS_DATA_MAX];
	size_t data_count;
	struct settings_trainer trainers[SETTINGS_TRAINERS_MAX];
	size_t trainer_count;
	struct ini_warnings warnings; /* for the program to say */
};

/* Reads `config`, or home/rivulet.conf, which may be absent, and the .conf files in that name's .d. The caller frees *out. */
ERR_MUST_USE enum err settings_load(
    struct settings **out, const char *home, const char *config, struct why *why);
/* The same from memory; `name` stands in errors. */
ERR_MUST_USE enum err settings_parse(
    struct settings **out, const char *name, const char *text, size_t len, struct why *why);
void settings_free(struct settings *s);

const struct settings_data *settings_find_data(const struct settings *s, const char *name);
const struct settings_trainer *settings_find_trainer(const struct settings *s, const char *name);

#endif
