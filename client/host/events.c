#include "events.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shown.h"

struct text {
	char *p;
	size_t left; /* the final zero included */
};

static void
put_char(struct text *l, char c)
{
	if (l->left > 1) {
		*l->p++ = c;
		l->left--;
	}
}

static void
put_text(struct text *l, const char *s)
{
	while (*s)
		put_char(l, *s++);
}

static bool
is_plain(const char *s)
{
	return *s &&
	    s[strspn(s,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789_.:/+,-")] == '\0';
}

static void
put_value(struct text *l, const char *s)
{
	if (is_plain(s)) {
		put_text(l, s);
		return;
	}
	put_char(l, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			put_char(l, '\\');
		put_char(l, c < 0x20 || c == 0x7f ? ' ' : (char)c);
	}
	put_char(l, '"');
}

void
events_format(char *out, size_t room, const char *event, const struct line_pair *pairs)
{
	struct text l = {.p = out, .left = room};
	char number[40];

	put_text(&l, event);
	for (; pairs->key; pairs++) {
		put_char(&l, ' ');
		put_text(&l, pairs->key);
		put_char(&l, '=');
		if (pairs->kind == LINE_STRING) {
			put_value(&l, pairs->s ? pairs->s : "");
			continue;
		}
		if (pairs->kind == LINE_UNSIGNED)
			snprintf(number, sizeof(number), "%llu", pairs->u);
		else
			snprintf(number, sizeof(number), "%.5g", pairs->d);
		put_text(&l, number);
	}
	*l.p = '\0';
	shown_clean(out);
}

void
events_emit(const struct events *ev, enum events_level level, const char *event,
    const struct line_pair *pairs)
{
	char line[EVENTS_LINE_MAX];

	if (ev->hear)
		ev->hear(ev->context, (int)level, event, pairs);
	if (ev->hear || !ev->sink)
		return;
	events_format(line, sizeof(line), event, pairs);
	ev->sink(ev->context, (int)level, line);
}
