/* What PROGRAM --offer prints: a whole answer within its limits, or an error with a reason and nothing of it. */

#include "capabilities.h"
#include "fuzz.h"
#include "json.h"

static void
check_names(const message_name *names, size_t count)
{
	if (count > MESSAGES_LIST_MAX)
		abort();
	for (size_t i = 0; i < count; i++)
		if (!names[i][0] || !memchr(names[i], '\0', sizeof(names[i])))
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct capabilities nothing;
	static struct capabilities c;
	struct why why = {""};

	if (capabilities_decode(&c, (const char *)data, len, &why)) {
		if (!why.text[0] || memcmp(&c, &nothing, sizeof(c)) != 0)
			abort();
		return 0;
	}
	if (len > CAPABILITIES_MAX || c.layer_count == 0 || c.threads > CAPABILITIES_THREADS_MAX ||
	    c.memory_bytes > JSON_INT_MAX)
		abort();
	check_names(c.layers, c.layer_count);
	check_names(c.features, c.feature_count);
	return 0;
}
