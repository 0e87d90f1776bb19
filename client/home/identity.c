#include "identity.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "hex.h"
#include "json.h"

#define FILE_MAX_BYTES (64u << 10)

enum err
identity_path(char out[PATH_MAX], const char *home, const char *name, struct why *why)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", home, name);

	if (n < 0 || n >= PATH_MAX)
		return err_set(why, ERR_LIMIT, "path too long: %.60s.../%.60s", home, name);
	return ERR_OK;
}

enum err
identity_home(char out[PATH_MAX], const char *given, struct why *why)
{
	const char *from = given && *given ? given : getenv("RIVULET_HOME");

	if (from && *from) {
		if (strlen(from) >= PATH_MAX)
			return err_set(why, ERR_LIMIT, "the home directory's name is too long");
		strcpy(out, from);
		return ERR_OK;
	}
	if (geteuid() == 0) {
		strcpy(out, "/var/lib/rivulet-device");
		return ERR_OK;
	}
	from = getenv("HOME");
	if (!from || !*from) {
		struct passwd *pw = getpwuid(geteuid());
		from = pw ? pw->pw_dir : NULL;
	}
	if (!from)
		return err_set(why, ERR_NOTFOUND, "no home directory; give one with --home");
	return identity_path(out, from, ".rivulet", why);
}

static bool
take_text(char *out, size_t room, const struct json *v)
{
	const char *text = json_string(v);

	if (!text || strlen(text) >= room)
		return false;
	strcpy(out, text);
	return true;
}

static bool
take_previous(struct identity *out, const struct json *keys)
{
	for (size_t i = 0; i < json_count(keys) && i < IDENTITY_KEYS_MAX; i++) {
		const char *text = json_string(json_at(keys, i));
		if (!text || !hex_decode(out->previous[i], KEY_SPKI_LEN, text, strlen(text)))
			return false;
		out->previous_count++;
	}
	return true;
}

static bool
take(struct identity *out, const struct json *doc)
{
	const struct json *urls = json_get(doc, "coordinators");
	uint64_t renew = 0;

	if (!take_text(out->device, sizeof(out->device), json_get(doc, "device")) ||
	    strlen(out->device) != 64 ||
	    !take_text(out->name, sizeof(out->name), json_get(doc, "name")) ||
	    !take_text(out->role, sizeof(out->role), json_get(doc, "role")))
		return false;
	if (json_u64(json_get(doc, "renew_after"), &renew))
		out->renew_after = (int64_t)renew;
	if (!take_previous(out, json_get(doc, "previous_keys")))
		return false;
	out->url_count = json_count(urls);
	if (out->url_count < 1 || out->url_count > IDENTITY_URLS_MAX)
		return false;
	for (size_t i = 0; i < out->url_count; i++)
		if (!take_text(out->urls[i], ADDRESS_MAX, json_at(urls, i)))
			return false;
	return true;
}

enum err
identity_load(struct identity *out, const char *home, struct why *why)
{
	char path[PATH_MAX];
	char *text = NULL;
	size_t len;
	struct json *doc = NULL;

	memset(out, 0, sizeof(*out));
	enum err e = identity_path(path, home, "device.json", why);
	if (!e)
		e = file_read(path, FILE_MAX_BYTES, &text, &len, why);
	if (e == ERR_NOTFOUND)
		return err_set(why, e,
		    "%s has not joined a coordinator; use `rivulet join` or `python -m rivulet "
		    "join`",
		    home);
	if (e)
		return e;
	e = json_parse(&doc, text, len, NULL);
	if (e || !take(out, doc))
		e = err_set(why, ERR_CORRUPT, "%s is damaged", path);
	json_free(doc);
	free(text);
	return e;
}

static void
add_previous(struct json *doc, const struct identity *id)
{
	struct json *keys;
	char hex[2 * KEY_SPKI_LEN + 1];

	if (id->previous_count == 0)
		return;
	keys = json_array();
	for (size_t i = 0; i < id->previous_count; i++) {
		hex_encode(hex, id->previous[i], KEY_SPKI_LEN);
		json_push(keys, json_new_string(hex));
	}
	json_add(doc, "previous_keys", keys);
}

enum err
identity_save(const struct identity *id, const char *home, struct why *why)
{
	char path[PATH_MAX];
	struct buf text;
	struct json *doc = json_object(), *urls = json_array();

	buf_init(&text, FILE_MAX_BYTES);
	json_add_string(doc, "device", id->device);
	json_add_string(doc, "name", id->name);
	json_add_string(doc, "role", id->role);
	for (size_t i = 0; i < id->url_count; i++)
		json_push(urls, json_new_string(id->urls[i]));
	json_add(doc, "coordinators", urls);
	add_previous(doc, id);
	json_add_u64(doc, "renew_after", id->renew_after > 0 ? (uint64_t)id->renew_after : 0);
	enum err e = identity_path(path, home, "device.json", why);
	if (!e && json_print(&text, doc, true))
		e = err_set(why, ERR_NOMEM, "no memory");
	if (!e)
		e = file_write(path, text.data, text.len, 0644, why);
	json_free(doc);
	buf_deinit(&text);
	return e;
}

bool
identity_has_url(const struct identity *id, const char *url)
{
	for (size_t i = 0; i < id->url_count; i++)
		if (strcmp(id->urls[i], url) == 0)
			return true;
	return false;
}

enum err
identity_add_url(struct identity *id, const char *url, struct why *why)
{
	if (identity_has_url(id, url))
		return ERR_OK;
	if (id->url_count == IDENTITY_URLS_MAX)
		return err_set(
		    why, ERR_LIMIT, "at most %d coordinator addresses", IDENTITY_URLS_MAX);
	snprintf(id->urls[id->url_count++], ADDRESS_MAX, "%s", url);
	return ERR_OK;
}

void
identity_add_previous(struct identity *id, const uint8_t spki[KEY_SPKI_LEN])
{
	for (size_t i = 0; i < id->previous_count; i++)
		if (memcmp(id->previous[i], spki, KEY_SPKI_LEN) == 0)
			return;
	memmove(id->previous[1], id->previous[0], (IDENTITY_KEYS_MAX - 1) * KEY_SPKI_LEN);
	memcpy(id->previous[0], spki, KEY_SPKI_LEN);
	if (id->previous_count < IDENTITY_KEYS_MAX)
		id->previous_count++;
}
