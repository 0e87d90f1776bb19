#include "data_source.h"

#include <string.h>

#include "num.h"

const char *const data_source_formats[] = {[DATA_GLYPHS] = "glyphs",
    [DATA_IDX] = "idx",
    [DATA_CSV] = "csv",
    [DATA_NPY] = "npy",
    [DATA_TEXT] = "text",
    [DATA_PACKED] = "packed",
    [DATA_EXTERNAL] = "external",
    [DATA_FORMATS] = NULL};
const char *const data_source_kinds[] = {"class", "regression", NULL};
const char *const data_source_separators[] = {[DATA_GUESS] = "guess",
    [DATA_COMMA] = "comma",
    [DATA_SEMICOLON] = "semicolon",
    [DATA_TAB] = "tab",
    NULL};
const char *const data_source_headers[] = {
    [DATA_HEADER_GUESS] = "guess", [DATA_HEADER_YES] = "yes", [DATA_HEADER_NO] = "no", NULL};

const char *
data_source_check(const struct data_source *s, const char **key)
{
	double v;

	*key = "missing";
	if (*s->missing && strcmp(s->missing, "skip") != 0 && !num_double(s->missing, &v))
		return "is skip, or the number to put in place of a missing value";
	return NULL;
}

size_t
data_source_files(const struct data_source *s, const char *out[DATA_SOURCE_FILES])
{
	const char *const all[] = {s->images, s->labels, s->x, s->y, s->path, s->vocabulary};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (*all[i] && n < DATA_SOURCE_FILES)
			out[n++] = all[i];
	return n;
}

size_t
data_source_names(const char *list, size_t i, char *out, size_t room)
{
	size_t n = 0;

	for (const char *p = list + strspn(list, ", \t"); *p; p += strspn(p, ", \t")) {
		size_t len = strcspn(p, ",");
		const char *next = p + len;
		while (len > 0 && (p[len - 1] == ' ' || p[len - 1] == '\t'))
			len--;
		if (out && n == i) {
			len = len < room ? len : room - 1;
			memcpy(out, p, len);
			out[len] = '\0';
		}
		n++;
		p = next;
	}
	return n;
}
