#include "record_json.h"

#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "hex.h"
#include "json.h"

/* NULL if memory is short, which makes the tree bad. */
static struct json *
base64_string(const void *data, size_t len)
{
	char *text = malloc(BASE64_LEN(len) + 1);

	if (!text)
		return NULL;
	base64_encode(text, data, len);
	struct json *v = json_new_string(text);
	free(text);
	return v;
}

struct json *
record_json_detail(const struct record_detail *d)
{
	struct json *v = json_object();
	char salt[2 * RECORD_SALT + 1];

	hex_encode(salt, d->salt, sizeof(d->salt));
	json_add_u64(v, "seq", d->seq);
	json_add_u64(v, "place", d->place);
	json_add_string(v, "salt", salt);
	json_add(v, "data", base64_string(d->data, d->len));
	return v;
}

enum err
record_json_detail_read(struct record_detail *out, const struct json *v, struct why *why)
{
	const char *salt = json_string(json_get(v, "salt"));
	const char *data = json_string(json_get(v, "data"));
	struct record_detail d = {.len = RECORD_DETAIL_MAX};

	memset(out, 0, sizeof(*out));
	if (!json_u64(json_get(v, "seq"), &d.seq) || !json_u64(json_get(v, "place"), &d.place) ||
	    !salt || !hex_decode(d.salt, sizeof(d.salt), salt, strlen(salt)) || !data)
		return err_set(why, ERR_INVALID, "a detail needs seq, place, salt and data");
	size_t room = strlen(data) / 4 * 3;
	if (room > RECORD_DETAIL_MAX + 2)
		return err_set(why, ERR_INVALID, "a detail is larger than %u", RECORD_DETAIL_MAX);
	d.data = malloc(room + 1);
	if (!d.data)
		return ERR_NOMEM;
	d.len = room;
	if (base64_decode(d.data, &d.len, data, strlen(data)) || d.len > RECORD_DETAIL_MAX) {
		free(d.data);
		return err_set(why, ERR_INVALID, "a detail's data is not base64");
	}
	*out = d;
	return ERR_OK;
}

struct json *
record_json_entry(const uint8_t *link, const char *body, struct json *details)
{
	struct json *v = json_object();
	struct record r = {.seq = 0};

	if (record_decode(&r, link, RECORD_LEN, NULL) == ERR_OK) {
		json_add_u64(v, "seq", r.seq);
		json_add_double(v, "at", (double)r.at_ms / 1000);
		json_add_u64(v, "incarnation", r.incarnation);
	}
	json_add(v, "link", base64_string(link, RECORD_LEN));
	json_add_string(v, "body", body);
	if (details)
		json_add(v, "details", details);
	return v;
}

enum err
record_json_entry_read(const struct json *v, uint8_t link[RECORD_LEN], const char **body,
    const struct json **details, struct why *why)
{
	const char *text = json_string(json_get(v, "link"));
	size_t len = RECORD_LEN;

	*body = json_string(json_get(v, "body"));
	*details = json_get(v, "details");
	if (!*body || strlen(*body) > RECORD_BODY_MAX)
		return err_set(why, ERR_INVALID, "an entry has no body, or too large a one");
	if (!text || base64_decode(link, &len, text, strlen(text)) || len != RECORD_LEN)
		return err_set(
		    why, ERR_INVALID, "an entry's link is not %d bytes in base64", RECORD_LEN);
	if (*details && json_kind(*details) != JSON_ARRAY)
		return err_set(why, ERR_INVALID, "an entry's details are no array");
	return ERR_OK;
}
