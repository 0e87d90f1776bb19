/* A vocabulary, and behind the first zero byte a text that is cut into its words. */
#include "fuzz.h"
#include "text.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *end = len > 0 ? memchr(data, 0, len) : NULL;
	struct numbering words;
	struct why why;
	int32_t *tokens;
	size_t n, bytes = 0;

	if (!end || text_vocabulary(&words, data, (size_t)(end - data), &why))
		return 0;
	size_t rest = len - (size_t)(end - data) - 1;
	if (rest > 0 && text_tokens(&tokens, &n, &words, end + 1, rest, &why) == ERR_OK) {
		for (size_t i = 0; i < n; i++)
			bytes += words.items[tokens[i]].len;
		if (bytes != rest)
			abort();
		free(tokens);
	}
	numbering_deinit(&words);
	return 0;
}
