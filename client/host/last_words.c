#include "last_words.h"

#include <string.h>

void
last_words_init(struct last_words *l, char *text, size_t room)
{
	*l = (struct last_words){.text = text, .room = room};
	text[0] = '\0';
}

void
last_words_add(struct last_words *l, const char *data, size_t n)
{
	size_t most = l->room - 1;

	if (n > most) {
		data += n - most;
		n = most;
	}
	if (l->len + n > most) {
		size_t drop = l->len + n - most;
		memmove(l->text, l->text + drop, l->len - drop);
		l->len -= drop;
	}
	memcpy(l->text + l->len, data, n);
	l->len += n;
	l->text[l->len] = '\0';
}
