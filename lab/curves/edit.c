#include "edit.h"

#include <string.h>

struct path {
	char keys[EDIT_KEYS_MAX][EDIT_KEY_MAX];
	size_t count;
};

static enum err
add_key(struct path *path, const char **text, struct why *why)
{
	size_t len = 0;
	const char *p = *text;

	if (path->count == EDIT_KEYS_MAX)
		return err_set(why, ERR_INVALID, "a path of more than %d keys", EDIT_KEYS_MAX);
	char *key = path->keys[path->count++];
	for (; *p && *p != '.'; p++) {
		if (*p == '\\' && p[1] == '.')
			p++;
		if (len + 1 == EDIT_KEY_MAX)
			return err_set(
			    why, ERR_INVALID, "a key longer than %d bytes", EDIT_KEY_MAX - 1);
		key[len++] = *p;
	}
	key[len] = '\0';
	*text = p;
	return len > 0 ? ERR_OK : err_set(why, ERR_INVALID, "a path with an empty key");
}

static enum err
parse_path(struct path *path, const char *text, struct why *why)
{
	path->count = 0;
	for (;;) {
		enum err e = add_key(path, &text, why);
		if (e || !*text)
			return e;
		text++; /* the dot */
	}
}

/* A copy of the object, which may be absent, with the value behind the keys from `k` on. */
static struct json *
with(const struct json *object, const struct path *path, size_t k, const struct json *value)
{
	if (k == path->count)
		return json_copy(value);
	const char *key = path->keys[k];
	struct json *out = json_object();
	bool found = false;
	for (const struct json *m = json_first(object); m; m = json_next(m)) {
		bool meant = strcmp(json_key(m), key) == 0;
		found = found || meant;
		json_add(out, json_key(m), meant ? with(m, path, k + 1, value) : json_copy(m));
	}
	if (!found)
		json_add(out, key, with(NULL, path, k + 1, value));
	return out;
}

static enum err
check_way(const struct json *document, const struct path *path, struct why *why)
{
	const struct json *at = document;

	for (size_t k = 0; k < path->count && at; k++) {
		if (json_kind(at) != JSON_OBJECT)
			return err_set(why, ERR_INVALID,
			    "\"%.60s\" is not an object: \"%.60s\" cannot be set in it",
			    k > 0 ? path->keys[k - 1] : "the document", path->keys[k]);
		at = json_get(at, path->keys[k]);
	}
	return ERR_OK;
}

enum err
edit_split(const char *text, char path[EDIT_PATH_MAX], const char **value, struct why *why)
{
	size_t len = strcspn(text, "=");

	if (text[len] != '=' || len == 0)
		return err_set(why, ERR_INVALID, "--set wants PATH=VALUE, not \"%.60s\"", text);
	if (len >= EDIT_PATH_MAX)
		return err_set(why, ERR_INVALID, "a path longer than %d bytes", EDIT_PATH_MAX - 1);
	memcpy(path, text, len);
	path[len] = '\0';
	*value = text + len + 1;
	return ERR_OK;
}

enum err
edit_put(struct json **document, const char *path, const struct json *value, struct why *why)
{
	struct path keys;
	enum err e = parse_path(&keys, path, why);

	if (!e)
		e = check_way(*document, &keys, why);
	if (e)
		return e;
	struct json *changed = with(*document, &keys, 0, value);
	json_free(*document);
	*document = changed;
	return ERR_OK;
}

enum err
edit_value(struct json **out, const char *text, struct why *why)
{
	if (json_parse(out, text, strlen(text), NULL) == ERR_OK)
		return ERR_OK;
	*out = json_new_string(text);
	return *out ? ERR_OK : err_set(why, ERR_NOMEM, "no memory");
}

enum err
edit_set(struct json **document, const char *text, struct why *why)
{
	char path[EDIT_PATH_MAX];
	const char *value;
	struct json *parsed = NULL;
	enum err e = edit_split(text, path, &value, why);

	if (!e)
		e = edit_value(&parsed, value, why);
	if (!e)
		e = edit_put(document, path, parsed, why);
	json_free(parsed);
	return e;
}
