#include "measures_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "recipe.h"
#include "recipe_text.h"
#include "version.h"

#define FILE_MAX_BYTES ((size_t)64 << 10)
#define HEAD "rivulet-site measures 1"

/* --- where it is */

static uint64_t
mix(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

/* What the seconds hang on. */
static uint64_t
key_of(const struct measures_want *w)
{
	const char *version = version_text(), *pretend = getenv("RIVULET_SITE_PRETEND");
	const struct recipe_text *text = w->recipe->text;
	uint64_t h = mix(0xcbf29ce484222325u, version, strlen(version));

	h = mix(h, recipe_text_all(text), recipe_text_bytes(text));
	h = mix(h, &w->whole->max_batch, sizeof(w->whole->max_batch));
	h = mix(h, &w->threads, sizeof(w->threads));
	h = mix(h, &w->ranks, sizeof(w->ranks));
	h = mix(h, &w->processes, sizeof(w->processes));
	return pretend ? mix(h, pretend, strlen(pretend)) : h;
}

/* The folders are made, as far as they are missing. */
static bool
path_of(char out[PATH_MAX], const struct measures_want *w)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	static const char *const folders[] = {"", "/rivulet", "/sites"};
	int n = cache && *cache ? snprintf(out, PATH_MAX, "%s", cache)
	    : home && *home	? snprintf(out, PATH_MAX, "%s/.cache", home)
				: -1;

	for (size_t i = 0; n > 0 && n < PATH_MAX && i < 3; i++) {
		n += snprintf(out + n, PATH_MAX - (size_t)n, "%s", folders[i]);
		if (n < PATH_MAX)
			(void)!mkdir(out, 0700);
	}
	if (n > 0 && n < PATH_MAX)
		n += snprintf(
		    out + n, PATH_MAX - (size_t)n, "/%016llx", (unsigned long long)key_of(w));
	return n > 0 && n < PATH_MAX;
}

/* --- what stands in it */

static bool
take(char **at, double *out)
{
	char *end;

	*out = strtod(*at, &end);
	bool good = end != *at && *out >= 0 && *out < 1e15;
	*at = end;
	return good;
}

static bool
parse(struct measures *m, char *text)
{
	size_t head = strlen(HEAD);
	char *at = text + head;
	bool good = strncmp(text, HEAD, head) == 0;

	good = good && take(&at, &m->bytes_per_s) && take(&at, &m->latency_s);
	for (unsigned r = 0; good && r < m->ranks; r++)
		good = take(&at, &m->factor[r]) && m->factor[r] > 0;
	for (uint32_t i = 0; good && i < m->count; i++)
		good = take(&at, &m->forward_s[i]) && take(&at, &m->back_s[i]);
	return good && strcmp(at, "\nend\n") == 0;
}

bool
measures_file_load(struct measures *m, const struct measures_want *want)
{
	char path[PATH_MAX], *text = NULL;
	size_t len;
	bool good = path_of(path, want) &&
	    file_read(path, FILE_MAX_BYTES, &text, &len, NULL) == ERR_OK && parse(m, text);

	free(text);
	/* Of a damaged file nothing stays that a measurement would add to. */
	if (!good)
		m->bytes_per_s = m->latency_s = 0;
	return good;
}

void
measures_file_save(const struct measures *m, const struct measures_want *want)
{
	char path[PATH_MAX];
	struct buf text;

	if (!path_of(path, want))
		return;
	buf_init(&text, FILE_MAX_BYTES);
	enum err e = buf_printf(&text, "%s %.9g %.9g", HEAD, m->bytes_per_s, m->latency_s);
	for (unsigned r = 0; !e && r < m->ranks; r++)
		e = buf_printf(&text, " %.9g", m->factor[r]);
	for (uint32_t i = 0; !e && i < m->count; i++)
		e = buf_printf(&text, "\n%.9g %.9g", m->forward_s[i], m->back_s[i]);
	if (!e)
		e = buf_printf(&text, "\nend\n");
	if (!e)
		(void)!file_write(path, text.data, text.len, 0600, NULL);
	buf_deinit(&text);
}
