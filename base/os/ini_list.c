#include <stdio.h>

#include "ini.h"
#include "option.h"

#define WORDS_ROOM 512

/* "error|warn|info". */
static void
join(char out[WORDS_ROOM], const char *const *words)
{
	size_t len = 0;

	*out = '\0';
	for (size_t i = 0; words && words[i] && len < WORDS_ROOM; i++)
		len += (size_t)snprintf(
		    out + len, WORDS_ROOM - len, "%s%s", i > 0 ? "|" : "", words[i]);
}

enum err
ini_list(struct buf *out, const struct ini_section *sections)
{
	char title[OPTION_PATH_MAX], words[WORDS_ROOM];
	enum err e = ERR_OK;

	for (const struct ini_section *s = sections; s->name; s++) {
		snprintf(title, sizeof(title), "%s%s", s->name, s->open ? " NAME" : "");
		for (const struct ini_key *k = s->keys; k->name && !e; k++) {
			if (!k->set || k->now)
				continue;
			join(words, k->words);
			e = option_put_line(out,
			    &(struct option_line){
				"setting", title, k->name, k->fallback, words, '\0'});
		}
	}
	return e;
}
