#include "csv_field.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "num.h"

/* Takes the text between quotes; `at` stands behind the first one. NULL if the quotes do not end. */
static char *
unquote(char *at, char **text)
{
	char *to = at;

	*text = at;
	for (; *at; at++) {
		if (*at == '"' && *++at != '"') {
			*to = '\0';
			return at;
		}
		*to++ = *at;
	}
	return NULL;
}

bool
csv_field_cut(char **at, char separator, char **text)
{
	const char *blanks = separator == '\t' ? " " : " \t";
	char *p = *at + strspn(*at, blanks);
	char *stop;

	if (*p == '"') {
		p = unquote(p + 1, text);
		if (!p)
			return false;
		stop = p + strspn(p, blanks);
		if (*stop && *stop != separator)
			return false;
	} else {
		*text = p;
		stop = strchr(p, separator);
		if (!stop)
			stop = p + strlen(p);
		for (p = stop; p > *text && (p[-1] == ' ' || p[-1] == '\t');)
			p--;
	}
	*at = *stop ? stop + 1 : NULL;
	*p = '\0';
	return true;
}

bool
csv_field_number(const char *field, double *out)
{
	return num_short(field, strlen(field), out) || num_double(field, out);
}
