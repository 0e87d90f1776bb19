/* Lists of devices, tokens and jobs as `rivulet` prints them: a coordinator's answer must not reach the terminal with control
 * characters in it, whatever stands in its members. */
#include <stdio.h>

#include "fuzz.h"
#include "json.h"
#include "print.h"

static const char *const keys[] = {"device", "name", "state", "uses", "last_contact", "bytes"};

static void
print_row(struct cmd_table *t, const struct json *v)
{
	cmd_print_short_id(t, v, keys[0]);
	cmd_print_text(t, v, keys[1]);
	cmd_print_figure(t, v, keys[2]);
	cmd_print_count(t, v, keys[3]);
	cmd_print_age(t, v, keys[4]);
	cmd_print_bytes(t, v, keys[5]);
}

static void
print(const struct json *doc)
{
	struct cmd_table t;

	cmd_print_start(&t, keys, sizeof(keys) / sizeof(*keys));
	print_row(&t, doc);
	for (const struct json *list = json_first(doc); list; list = json_next(list))
		for (const struct json *v = json_first(list); v; v = json_next(v))
			print_row(&t, v);
	cmd_print_end(&t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct json *doc = NULL;
	FILE *terminal = stdout;
	char *text = NULL;
	size_t n = 0;

	if (len > 65536 || json_parse(&doc, (const char *)data, len, NULL))
		return 0;
	stdout = open_memstream(&text, &n);
	if (!stdout)
		abort();
	print(doc);
	fflush(stdout);
	if (text && strchr(text, 0x7f))
		abort();
	cmd_print_json(doc);
	fclose(stdout);
	stdout = terminal;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\t')
			abort();
	free(text);
	json_free(doc);
	return 0;
}
