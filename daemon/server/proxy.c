#include "proxy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "num.h"

#define TEXT_MAX 107 /* of version 1, with its end of line */
#define HEAD 16 /* of version 2: signature, version and command, family, length */
#define LOCAL 0x20
#define PROXIED 0x21
#define TCP4 0x11
#define TCP6 0x21

static const uint8_t signature[12] = "\r\n\r\n\0\r\nQUIT\n";
static const char text_start[] = "PROXY ";

/* --- version 1: "PROXY TCP4 SOURCE DESTINATION PORT PORT\r\n" */

/* The word at *at, ended by one space or by the end; false for an empty one. */
static bool
next_word(char **at, char **word)
{
	*word = *at;
	size_t len = strcspn(*at, " ");
	bool last = (*at)[len] == '\0';

	(*at)[len] = '\0';
	*at += last ? len : len + 1;
	return len > 0;
}

static enum proxy_result
parse_line(char *line, char peer[64])
{
	uint8_t address[16];
	uint64_t port;
	char *family, *word[4], *at = line;

	if (!next_word(&at, &family))
		return PROXY_BAD;
	peer[0] = '\0';
	if (strcmp(family, "UNKNOWN") == 0)
		return PROXY_DONE;
	int af = strcmp(family, "TCP4") == 0 ? AF_INET : AF_INET6;
	if (af == AF_INET6 && strcmp(family, "TCP6") != 0)
		return PROXY_BAD;
	for (int i = 0; i < 4; i++)
		if (!next_word(&at, &word[i]))
			return PROXY_BAD;
	if (*at || inet_pton(af, word[1], address) != 1 || inet_pton(af, word[0], address) != 1 ||
	    !num_u64(word[2], UINT16_MAX, &port) || !num_u64(word[3], UINT16_MAX, &port))
		return PROXY_BAD;
	return inet_ntop(af, address, peer, 64) ? PROXY_DONE : PROXY_BAD;
}

static enum proxy_result
parse_text(const uint8_t *data, size_t len, size_t *used, char peer[64])
{
	char line[TEXT_MAX];
	size_t most = len < TEXT_MAX ? len : TEXT_MAX;
	const uint8_t *end = memchr(data, '\n', most);

	*used = end ? (size_t)(end - data) + 1 : most;
	if (!end)
		return len < TEXT_MAX ? PROXY_MORE : PROXY_BAD;
	size_t n = (size_t)(end - data);
	if (n < strlen(text_start) + 1 || end[-1] != '\r' || memchr(data, '\0', n))
		return PROXY_BAD;
	n -= strlen(text_start) + 1;
	memcpy(line, data + strlen(text_start), n);
	line[n] = '\0';
	return parse_line(line, peer);
}

/* --- version 2 */

static enum proxy_result
parse_binary(const uint8_t *data, size_t len, size_t *used, char peer[64])
{
	if (len < HEAD) {
		*used = len;
		return PROXY_MORE;
	}
	size_t rest = (size_t)data[14] << 8 | data[15];
	bool v6 = data[13] == TCP6;
	if (HEAD + rest > PROXY_HEAD_MAX || (data[12] != LOCAL && data[12] != PROXIED))
		return PROXY_BAD;
	*used = len < HEAD + rest ? len : HEAD + rest;
	if (*used < HEAD + rest)
		return PROXY_MORE;
	peer[0] = '\0';
	/* Nobody's connection, or of a kind that has no IP address. */
	if (data[12] == LOCAL || data[13] == 0)
		return PROXY_DONE;
	if ((!v6 && data[13] != TCP4) || rest < (v6 ? 36u : 12u))
		return PROXY_BAD;
	return inet_ntop(v6 ? AF_INET6 : AF_INET, data + HEAD, peer, 64) ? PROXY_DONE : PROXY_BAD;
}

enum proxy_result
proxy_parse(const uint8_t *data, size_t len, size_t *used, char peer[64])
{
	size_t text = strlen(text_start), both = sizeof(signature);

	*used = len;
	if (memcmp(data, text_start, len < text ? len : text) == 0)
		return len < text ? PROXY_MORE : parse_text(data, len, used, peer);
	if (memcmp(data, signature, len < both ? len : both) == 0)
		return len < both ? PROXY_MORE : parse_binary(data, len, used, peer);
	return PROXY_BAD;
}

bool
proxy_is_from(const struct config *c, const char *peer)
{
	for (size_t i = 0; i < c->proxy_count; i++)
		if (subnet_has(&c->proxies[i], peer))
			return true;
	return false;
}
