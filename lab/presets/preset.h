#ifndef PRESET_H
#define PRESET_H
#include "json.h"

/*
 * Networks that people know by name, as layers: names and shapes are torchvision's where it has them, so that its files fit. A preset is
 * expanded where a job document is read: what is sent, hashed and signed has layers only.
 */

/* A number that a preset takes, with what it is if nobody says. */
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
	uint32_t height; /* of pictures that are not square; 0: `side` */
};

const struct preset *preset_list(void);
/* {"layers": [...], "loss": ...} of a preset; settings: an object of numbers, or NULL. *data, if not NULL, gets what the network needs of
 * "data": {"shape": [...]} or {"window": n}. The caller frees both. ERR_NOTFOUND for no preset, ERR_INVALID for a setting it has not or
 * that is out of range, ERR_NOMEM. */
ERR_MUST_USE enum err preset_model(struct json **model, struct json **data, const char *name,
    const struct json *settings, struct why *why);

/* A job document whose "model" is {"preset": NAME, "set": {...}} becomes one of layers: *text, of *len bytes, is freed and made anew.
 * "loss" and other keys of the model stay; what "data" lacks of the network's needs is added. Any other document is left as it is. */
ERR_MUST_USE enum err preset_expand(char **text, size_t *len, struct why *why);
/* Every command reads a job file with this one: what is read is what is sent, but for the preset, which is expanded. The caller frees
 * *text. `edit`, or NULL, changes the document as it stands in the file, before that: *text is freed and made anew. */
struct preset_edit {
	enum err (*change)(void *ctx, char **text, size_t *len, struct why *why);
	void *ctx;
};
ERR_MUST_USE enum err preset_read(
    const char *path, const struct preset_edit *edit, char **text, size_t *len, struct why *why);
/* What a document is made from, as it stands in the file, which holds an object. */
ERR_MUST_USE enum err preset_read_base(const char *path, struct json **out, struct why *why);

#endif
