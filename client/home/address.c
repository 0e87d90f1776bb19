#include "address.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "num.h"

/* Letters, digits, dots, dashes and underscores; or a bracketed IPv6 address. */
static bool
host_ok(const char *host, size_t len)
{
	bool v6 = len > 2 && host[0] == '[' && host[len - 1] == ']';
	const char *more = v6 ? ":.%" : ".-_";

	if (len == 0 || len > 255)
		return false;
	for (size_t i = v6 ? 1 : 0; i < len - (v6 ? 1 : 0); i++)
		if (!isalnum((unsigned char)host[i]) && !strchr(more, host[i]))
			return false;
	return true;
}

/* Length of the host part of "host[:port][/...]". */
static size_t
host_len(const char *p)
{
	if (*p == '[') {
		size_t n = strcspn(p, "]/");
		return p[n] == ']' ? n + 1 : n;
	}
	return strcspn(p, ":/");
}

/* Reads ":port" if there is one; false if that is none. */
static bool
take_port(const char **rest, uint64_t *port)
{
	char digits[8] = "";

	if (**rest != ':')
		return true;
	size_t n = strcspn(*rest + 1, "/");
	if (n < sizeof(digits))
		memcpy(digits, *rest + 1, n);
	*rest += 1 + n;
	return num_u64(digits, 65535, port) && *port != 0;
}

enum err
address_normalise(char out[ADDRESS_MAX], const char *text, struct why *why)
{
	const char *p = text;
	uint64_t port = ADDRESS_PORT;

	if (strncmp(p, "https://", 8) == 0)
		p += 8;
	else if (strstr(p, "://"))
		return err_set(why, ERR_INVALID, "\"%.100s\" does not begin with https://", text);
	size_t len = host_len(p);
	if (!host_ok(p, len))
		return err_set(why, ERR_INVALID, "\"%.100s\" has no valid host name", text);
	const char *rest = p + len;
	if (!take_port(&rest, &port))
		return err_set(why, ERR_INVALID, "\"%.100s\" has no valid port", text);
	if (*rest && strcmp(rest, "/") != 0)
		return err_set(why, ERR_INVALID,
		    "\"%.100s\" has a path; only host and port belong here", text);
	int n = snprintf(out, ADDRESS_MAX, "https://%.*s:%u", (int)len, p, (unsigned)port);
	if (n < 0 || n >= ADDRESS_MAX)
		return err_set(why, ERR_LIMIT, "address too long");
	for (char *c = out; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return ERR_OK;
}

enum err
address_mirror(char out[ADDRESS_MAX], const char *text, struct why *why)
{
	size_t scheme = strncmp(text, "https://", 8) == 0 ? 8
	    : strncmp(text, "http://", 7) == 0		  ? 7
							  : 0;
	size_t len = strlen(text);

	const char *host = text + scheme, *rest = host + host_len(host);
	uint64_t port;
	if (!scheme || !host_ok(host, host_len(host)) || !take_port(&rest, &port) ||
	    (*rest && *rest != '/') || strpbrk(rest, "?#"))
		return err_set(why, ERR_INVALID, "\"%.100s\" is no http or https address", text);
	while (len > 0 && text[len - 1] == '/')
		len--;
	if (len >= ADDRESS_MAX)
		return err_set(why, ERR_LIMIT, "address too long");
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			return err_set(why, ERR_INVALID,
			    "\"%.100s\" holds a character that no address has", text);
	memcpy(out, text, len);
	out[len] = '\0';
	return ERR_OK;
}
