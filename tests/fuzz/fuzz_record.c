/* An entry of the audit chain, and a detail in JSON. What decodes must encode to the same again. */

#include "fuzz.h"
#include "json.h"
#include "record_json.h"

static void
detail(const struct json *v)
{
	struct record_detail d, again;
	struct why why;

	if (record_json_detail_read(&d, v, &why) != ERR_OK)
		return;
	struct json *w = record_json_detail(&d);
	if (record_json_detail_read(&again, w, &why) != ERR_OK || again.len != d.len ||
	    again.seq != d.seq || again.place != d.place ||
	    memcmp(again.salt, d.salt, sizeof(d.salt)) != 0 ||
	    memcmp(again.data, d.data, d.len) != 0)
		abort();
	json_free(w);
	free(again.data);
	free(d.data);
}

static void
text(const void *data, size_t len)
{
	uint8_t link[RECORD_LEN];
	const struct json *details;
	struct json *v = NULL;
	const char *body;
	struct why why;

	if (len > 4u << 20 || json_parse(&v, data, len, &why) != ERR_OK)
		return;
	detail(v);
	if (record_json_entry_read(v, link, &body, &details, &why) == ERR_OK)
		for (const struct json *d = json_first(details); d; d = json_next(d))
			detail(d);
	json_free(v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[RECORD_LEN];
	struct record r;
	struct why why;

	if (record_decode(&r, data, len, &why) == ERR_OK) {
		record_encode(again, &r);
		if (memcmp(again, data, RECORD_LEN) != 0)
			abort();
	}
	text(data, len);
	return 0;
}
