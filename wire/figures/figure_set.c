#include "figure_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"
#include "num.h"

#define WORDS_MAX (4 + FIGURE_SET_TOPS_MAX)
#define WORD_MAX 16
#define BINS 256
#define REAL_BYTES 25 /* a double as it is printed, and a comma */
#define WHOLE_BYTES 17 /* a whole number up to 2^53, and a comma */

bool
figure_set_any(const struct figure_set *w)
{
	return w->classes || w->confusion || w->regression || w->auc || w->top_count > 0;
}

/* "top5". */
static void
read_top(struct figure_set *out, struct field *item, const char *word)
{
	uint64_t k = 0;
	size_t at = out->top_count;

	if (strncmp(word, "top", 3) != 0 || !num_u64(word + 3, FIGURE_SET_TOP_MAX, &k) || k == 0 ||
	    word[3] == '0') {
		field_fail(item, NULL,
		    "must be one of \"classes\", \"confusion\", \"regression\", \"auc\", and "
		    "\"top1\" to \"top%d\"",
		    FIGURE_SET_TOP_MAX);
		return;
	}
	if (at == FIGURE_SET_TOPS_MAX) {
		field_fail(item, NULL, "only %d of \"topK\"", FIGURE_SET_TOPS_MAX);
		return;
	}
	for (; at > 0 && out->tops[at - 1] > k; at--)
		out->tops[at] = out->tops[at - 1];
	if (at > 0 && out->tops[at - 1] == k)
		field_fail(item, NULL, "stands there twice");
	out->tops[at] = (uint32_t)k;
	out->top_count++;
}

void
figure_set_read(struct figure_set *out, struct field *evaluate)
{
	static const char *const words[] = {"classes", "confusion", "regression", "auc"};
	bool *const flags[] = {&out->classes, &out->confusion, &out->regression, &out->auc};
	struct field_list list;
	struct field item;
	char word[WORD_MAX];

	*out = (struct figure_set){.classes = false};
	field_array(&list, evaluate, "figures", 0, WORDS_MAX);
	while (field_each(&list, &item)) {
		size_t i = 0;
		field_string(&item, NULL, FIELD_NAME, word, sizeof(word), NULL);
		while (i < 4 && strcmp(word, words[i]) != 0)
			i++;
		if (i == 4)
			read_top(out, &item, word);
		else if (*flags[i])
			field_fail(&item, NULL, "stands there twice");
		else
			*flags[i] = true;
	}
}

static uint64_t
digits(uint64_t n)
{
	char text[24];

	return (uint64_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Each kind of text as counts_json.c prints it; a count of none is left out, so there are no more of them than examples. */
uint64_t
figure_set_bytes(const struct figure_set *w, uint64_t classes, uint64_t examples)
{
	uint64_t index = classes > 0 ? digits(classes - 1) : 1, count = digits(examples), bytes = 0;

	if (w->classes)
		bytes += 12 + least(classes, 2 * examples) * (index + 3 * count + 6);
	if (w->confusion)
		bytes += 14 + least(classes * classes, examples) * (2 * index + count + 5);
	if (w->top_count > 0)
		bytes += 8 + w->top_count * (digits(FIGURE_SET_TOP_MAX) + count + 4);
	if (w->regression)
		bytes += 80 + WHOLE_BYTES + 4 * REAL_BYTES;
	if (w->auc)
		bytes += 36 + least(2 * BINS, examples) * (digits(BINS - 1) + count + 4);
	return bytes;
}

void
figure_set_check(const struct figure_set *w, struct field *evaluate, uint64_t classes)
{
	bool of_classes = w->classes || w->confusion || w->top_count > 0;

	if (of_classes && classes < 2)
		field_fail(evaluate, "figures", "those of classes need \"data.classes\"");
	if (w->auc && classes != 2)
		field_fail(evaluate, "figures", "\"auc\" needs two classes");
	if (w->top_count > 0 && w->tops[w->top_count - 1] > classes)
		field_fail(evaluate, "figures", "\"top%u\" of %llu classes",
		    w->tops[w->top_count - 1], (unsigned long long)classes);
	if (w->regression && classes > 0)
		field_fail(evaluate, "figures", "\"regression\" is for numbers, not for classes");
}
