/* A change of a job's terms that is taken is written as text that says the same. */
#include "fuzz.h"
#include "json.h"
#include "override.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct override_set first, second;
	struct buf text;

	if (override_parse(&first, (const char *)data, len, NULL))
		return 0;
	buf_init(&text, OVERRIDE_TEXT_MAX);
	struct json *v = override_json(&first);
	if (json_print(&text, v, false) ||
	    override_parse(&second, buf_str(&text), text.len, NULL) ||
	    memcmp(first.state, second.state, sizeof(first.state)) != 0)
		abort();
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		if (first.value[key] < second.value[key] || first.value[key] > second.value[key])
			abort();
	json_free(v);
	buf_deinit(&text);
	return 0;
}
