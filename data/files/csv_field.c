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

/* Reads [+-]digits[.digits] where the double nearest to it is one exact division away: whole digits below 2^53 and at most 22 of
 * them behind the point. Nearly all fields are such. */
static bool
short_number(const char *p, double *out)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	    1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	bool negative = *p == '-';
	const char *point = NULL;
	uint64_t digits = 0;

	if (negative || *p == '+')
		p++;
	const char *from = p;
	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			digits = digits * 10 + (uint64_t)(*p - '0');
		else if (*p == '.' && !point)
			point = p;
		else
			break;
		if (digits >> 53)
			return false;
	}
	size_t behind = point ? (size_t)(p - point) - 1 : 0;
	if (*p || p - from == (point != NULL) || behind > 22)
		return false;
	double v = (double)digits / powers[behind];
	*out = negative ? -v : v;
	return true;
}

bool
csv_field_number(const char *field, double *out)
{
	return short_number(field, out) || num_double(field, out);
}
