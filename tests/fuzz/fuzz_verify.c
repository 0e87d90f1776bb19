/* What rivulet verify understands of an entry: the body, up to the first NUL, and the details behind it, each up to the next.
 * Bodies reach it with a good signature, but the directory they lie in is anybody's. */

#include "fuzz.h"
#include "history.h"
#include "job.h"
#include "json.h"

#define DETAILS_MAX 8

static size_t
split(const uint8_t *data, size_t len, struct record_detail *out)
{
	size_t n = 0;

	while (n < DETAILS_MAX && len > 0) {
		const uint8_t *end = memchr(data, 0, len);
		size_t piece = end ? (size_t)(end - data) : len;
		out[n] = (struct record_detail){.place = n, .len = piece};
		out[n].data = malloc(piece + 1);
		if (!out[n].data)
			abort();
		memcpy(out[n++].data, data, piece);
		len -= end ? piece + 1 : piece;
		data += end ? piece + 1 : piece;
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct cmd_verify_history h = {.jobs = NULL};
	struct record_detail details[DETAILS_MAX];
	const uint8_t *end = len ? memchr(data, 0, len) : NULL;
	size_t body = end ? (size_t)(end - data) : len;
	struct json *v = NULL;
	struct why why;
	uint8_t id[32];

	if (len > 1u << 20 || json_parse(&v, (const char *)data, body, &why) != ERR_OK)
		return 0;
	const char *event = json_string(json_get(v, "event"));
	struct cmd_verify_entry e = {.link = {.seq = 1, .round = 1},
	    .body = v,
	    .event = event ? record_event_find(event) : RECORD_UNKNOWN,
	    .places = json_count(json_get(v, "details")),
	    .details = details};
	size_t skip = end ? body + 1 : body;
	e.count = split(data + skip, len - skip, details);
	struct cmd_verify_round r;
	if (event && cmd_verify_history_round(&r, &e, &why) == ERR_OK && r.round == 0)
		abort();
	/* Twice, so that the second meets what the first left. */
	for (int i = 0; i < 2 && event; i++) {
		if (cmd_verify_history_add(&h, &e, &why) != ERR_OK)
			break;
	}
	if (cmd_verify_history_device(&h, "x", id, &why) == ERR_OK && h.device_count == 0)
		abort();
	cmd_verify_history_deinit(&h);
	for (size_t i = 0; i < e.count; i++)
		free(details[i].data);
	json_free(v);
	return 0;
}
