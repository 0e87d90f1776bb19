/* What was parsed prints as a text that parses to the same print. */

#include "buf.h"
#include "err.h"
#include "fuzz.h"
#include "json.h"

static void
print(struct buf *out, const struct json *v, bool pretty)
{
	buf_init(out, 1 << 26);
	if (json_print(out, v, pretty))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct json *v = NULL, *again = NULL;
	struct buf first, second;
	struct why why;

	if (json_parse(&v, (const char *)data, len, &why))
		return 0;
	if (json_depth(v) > JSON_DEPTH_MAX)
		abort();
	print(&first, v, true);
	if (json_parse(&again, first.data, first.len, &why))
		abort();
	buf_deinit(&first);
	print(&first, v, false);
	print(&second, again, false);
	if (strcmp(first.data, second.data) != 0)
		abort();
	buf_deinit(&first);
	buf_deinit(&second);
	json_free(v);
	json_free(again);
	return 0;
}
