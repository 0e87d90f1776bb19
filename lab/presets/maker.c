#include "maker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint32_t
maker_get(const struct maker *m, const char *setting)
{
	const struct preset_setting *s = m->settings;

	while (s->name && strcmp(s->name, setting) != 0)
		s++;
	return s->value;
}

void
maker_layer(struct maker *m, const char *type, const char *name)
{
	struct json *layer = json_object();

	json_add_string(layer, "type", type);
	if (name)
		json_add_string(layer, "name", name);
	json_push(m->layers, layer);
	m->last = layer;
}

void
maker_u64(struct maker *m, const char *key, uint64_t v)
{
	json_add_u64(m->last, key, v);
}

void
maker_pair(struct maker *m, const char *key, uint64_t height, uint64_t width)
{
	struct json *pair = json_array();

	json_push(pair, json_new_u64(height));
	json_push(pair, json_new_u64(width));
	json_add(m->last, key, pair);
}

void
maker_word(struct maker *m, const char *key, const char *word)
{
	json_add_string(m->last, key, word);
}

void
maker_bool(struct maker *m, const char *key, bool v)
{
	json_add_bool(m->last, key, v);
}

void
maker_inputs(struct maker *m, const char *a, const char *b)
{
	struct json *list = json_array();

	json_push(list, json_new_string(a));
	if (b)
		json_push(list, json_new_string(b));
	json_add(m->last, "inputs", list);
}

const char *
maker_name(char out[MAKER_NAME], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(out, MAKER_NAME, fmt, args);
	va_end(args);
	return out;
}
