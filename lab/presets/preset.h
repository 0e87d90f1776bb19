#ifndef PRESET_H
#define PRESET_H
#include "json.h"

/*
 * Well-known networks as lists of layers: names and shapes of parameters are torchvision's where torchvision has the network, so that its
 * files fit. A preset is expanded when a job document is read: the document that is sent, hashed and signed has layers only.
 */

/* A number that a preset takes, with its range and its default. */
struct preset_setting {
	const char *name; /* NULL ends a list */
	uint32_t min, max, value;
};

/* What an example is. */
enum preset_kind { PRESET_PICTURES, PRESET_FEATURES, PRESET_TOKENS };

struct maker;
struct preset {
	const char *name; /* NULL ends the list */
	const char *help;
	const struct preset_setting *settings;
	void (*make)(struct maker *m);
	enum preset_kind kind;
	const char *loss;
	uint32_t height; /* of pictures that are not square; 0: the setting `side` */
};

const struct preset *preset_list(void);
/* *model: {"layers": [...], "loss": ...} of a preset; settings: an object of numbers, or NULL. data, if not NULL, gets what "data" of the
 * document must have for the network: {"shape": [...]} or {"window": n}. The caller frees *model and *data. ERR_NOTFOUND if there is no
 * such preset, ERR_INVALID for an unknown setting or one out of range, ERR_NOMEM. */
ERR_MUST_USE enum err preset_model(struct json **model, struct json **data, const char *name,
    const struct json *settings, struct why *why);

/* Expands a job document whose "model" is {"preset": NAME, "set": {...}} into layers: *text, of *len bytes, is freed and made anew.
 * "loss" and other keys of "model" stay; keys of "data" that the network needs are added. Any other document is left as it is. */
ERR_MUST_USE enum err preset_expand(char **text, size_t *len, struct why *why);
/* Reads a job file; every command uses preset_read. The text is that of the file, with a preset expanded. The caller frees *text. `edit`,
 * or NULL, changes the document before the preset is expanded: it frees *text and makes it anew. */
struct preset_edit {
	enum err (*change)(void *ctx, char **text, size_t *len, struct why *why);
	void *ctx;
};
ERR_MUST_USE enum err preset_read(
    const char *path, const struct preset_edit *edit, char **text, size_t *len, struct why *why);
/* *out: the JSON object in a job file, without expanding a preset, as the base of other documents. The caller frees *out. */
ERR_MUST_USE enum err preset_read_base(const char *path, struct json **out, struct why *why);

#endif
