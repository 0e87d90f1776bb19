#include "num.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
num_u64(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		uint64_t d = (uint64_t)(*text - '0');
		if (*text < '0' || *text > '9' || v > (max - d) / 10 || d > max)
			return false;
		v = v * 10 + d;
	}
	*out = v;
	return true;
}

bool
num_short(const char *text, size_t len, double *out)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	    1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *p = text, *end = text + len, *point = NULL;
	bool negative = len > 0 && *p == '-';
	uint64_t digits = 0;

	if (negative || (len > 0 && *p == '+'))
		p++;
	const char *from = p;
	for (; p < end && digits >> 53 == 0; p++) {
		if (*p >= '0' && *p <= '9')
			digits = digits * 10 + (uint64_t)(*p - '0');
		else if (*p == '.' && !point)
			point = p;
		else
			break;
	}
	size_t behind = point ? (size_t)(p - point) - 1 : 0;
	if (p < end || digits >> 53 || p - from == (point != NULL) || behind > 22)
		return false;
	double v = (double)digits / powers[behind];
	*out = negative ? -v : v;
	return true;
}

bool
num_double(const char *text, double *out)
{
	char *end;
	locale_t c;

	if (!*text || strspn(text, "+-0123456789.eE") != strlen(text))
		return false;
	/* A program that links librivulet may have set a locale with a decimal comma. */
	c = newlocale(LC_ALL_MASK, "C", NULL);
	if (!c)
		return false;
	double v = strtod_l(text, &end, c);
	freelocale(c);
	if (*end || !isfinite(v))
		return false;
	*out = v;
	return true;
}

bool
num_bytes(const char *text, uint64_t *out)
{
	char digits[24];
	size_t len = strlen(text);
	unsigned shift = 0;
	uint64_t v;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len + 1);
	switch (toupper((unsigned char)digits[len - 1])) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	}
	if (shift)
		digits[len - 1] = '\0';
	if (!num_u64(digits, UINT64_MAX >> shift, &v))
		return false;
	*out = v << shift;
	return true;
}

bool
num_seconds(const char *text, uint64_t *out)
{
	static const char letters[] = "smhd";
	static const uint64_t factors[] = {1, 60, 3600, 86400};
	size_t len = strlen(text);
	char digits[24];
	uint64_t v;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len + 1);
	const char *unit = strchr(letters, digits[len - 1]);
	uint64_t factor = unit ? factors[unit - letters] : 1;
	if (unit)
		digits[len - 1] = '\0';
	if (!num_u64(digits, UINT64_MAX / factor, &v))
		return false;
	*out = v * factor;
	return true;
}

bool
num_mul(size_t a, size_t b, size_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}

bool
num_add(size_t a, size_t b, size_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}

bool
num_round_up(size_t n, size_t unit, size_t *out)
{
	size_t over = n % unit;

	return num_add(n, over ? unit - over : 0, out);
}

double
num_power(double x, uint64_t n)
{
	double result = 1;

	for (; n > 0; n /= 2, x *= x)
		if (n % 2)
			result *= x;
	return result;
}

double
num_single(double x)
{
	return (double)(float)x;
}
