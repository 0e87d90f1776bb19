#ifndef MAKER_H
#define MAKER_H
#include "preset.h"

/* Builds a list of layers. No call fails: without memory a layer or key is missing, and json_print or preset_model reports it. */
struct maker {
	struct json *layers;
	const struct preset_setting *settings; /* with the values in use */
	struct json *last; /* the layer that maker_layer began last */
};

/* The value of a setting, which must exist. */
uint32_t maker_get(const struct maker *m, const char *setting);
/* Begins a layer; name NULL: the default name, by the layer's place. */
void maker_layer(struct maker *m, const char *type, const char *name);
/* Add a key to the layer that was begun last. */
void maker_u64(struct maker *m, const char *key, uint64_t v);
void maker_pair(struct maker *m, const char *key, uint64_t height, uint64_t width);
void maker_word(struct maker *m, const char *key, const char *word);
void maker_bool(struct maker *m, const char *key, bool v);
void maker_inputs(struct maker *m, const char *a, const char *b); /* b NULL: one input */

/* Formats a name into a buffer of the caller's. */
#define MAKER_NAME 64
const char *maker_name(char out[MAKER_NAME], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
