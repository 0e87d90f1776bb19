/* The counts of a report. The first byte picks what the job asks for, the rest is the report's text: what is taken is within its
 * classes, adds up, encodes, and its encoding is taken for the same. */
#include "buf.h"
#include "counts.h"
#include "fuzz.h"
#include "messages.h"

static const struct {
	struct figure_set set;
	size_t classes;
} asked[] = {
    {{.classes = true, .confusion = true, .auc = true, .tops = {1, 2}, .top_count = 2}, 2},
    {{.classes = true, .tops = {5}, .top_count = 1}, 10},
    {{.confusion = true}, 10},
    {{.regression = true}, 0},
    {{.classes = true, .auc = true, .labels = 3, .skips = true}, 2},
};

/* The counts anew, encoded and taken again, must encode to the same. */
static void
encode(struct buf *out, const struct counts *c)
{
	const struct report r = {
	    .has_evaluate = true, .eval_examples = c->examples, .eval_loss = 1, .counts = c};

	require(messages_report_encode(out, &r) == ERR_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct counts *c = NULL, *again = NULL;
	struct why why = {""};
	struct buf first, second;

	if (len == 0)
		return 0;
	size_t i = data[0] % (sizeof(asked) / sizeof(asked[0]));
	char *text = fuzz_string(data + 1, len - 1);
	enum err e = len > REPORT_MAX
	    ? ERR_LIMIT
	    : messages_report_counts(&c, &asked[i].set, asked[i].classes, text, len - 1, &why);
	require(e == ERR_OK || e == ERR_LIMIT || why.text[0]);
	require(!e || !c);
	if (c) {
		const struct counts_said said = {.examples = c->examples};
		require(counts_check(c, &said, NULL) == ERR_OK);
		buf_init(&first, 4 * REPORT_MAX);
		buf_init(&second, 4 * REPORT_MAX);
		encode(&first, c);
		require(messages_report_counts(&again, &asked[i].set, asked[i].classes, first.data,
			    first.len, NULL) == ERR_OK);
		encode(&second, again);
		require(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
		buf_deinit(&first);
		buf_deinit(&second);
	}
	counts_free(c);
	counts_free(again);
	free(text);
	return 0;
}
