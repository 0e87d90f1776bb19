/* A connection's bytes up to the end of its first head, as conn_read.c hands them over; then any bytes as a head. What is
 * taken must be as narrow as the handlers rely on. */

#include "fuzz.h"
#include "http.h"
#include "routes.h"

/* No value may smuggle a line into a log or a response. */
static void
check_decoded(const char *s, size_t room)
{
	require(strlen(s) < room);
	for (; *s; s++)
		require((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void
check_target(const struct http_request *r)
{
	char value[16];

	require(r->path[0] == '/' && strlen(r->path) < HTTP_PATH_MAX);
	require(!strpbrk(r->path, " %#?\t\r\n") && !strpbrk(r->query, " #\t\r\n"));
	for (const char *p = r->path; *p; p++)
		require((unsigned char)*p > 0x20 && (unsigned char)*p < 0x7f);
	if (http_query(r, "from", value, sizeof(value)))
		check_decoded(value, sizeof(value));
	for (size_t n = 0; http_query_item(r, "where", n, value, sizeof(value)); n++) {
		require(n < HTTP_PATH_MAX);
		check_decoded(value, sizeof(value));
	}
}

/* The words that the route has are known; what is not known stands in the query, as far as it fits. */
static void
check_words(const struct http_request *r, const char *words)
{
	char unknown[HTTP_WORD_MAX] = "", value[80];

	if (!http_query_knows(r, words, unknown)) {
		require(strlen(unknown) < sizeof(unknown) && strstr(r->query, unknown));
		require(!*unknown || !strchr(unknown, '&'));
	}
	for (const char *p = words; *p;) {
		char word[HTTP_WORD_MAX];
		size_t n = strcspn(p, " ");
		require(n < sizeof(word));
		memcpy(word, p, n);
		word[n] = '\0';
		if (http_query(r, word, value, sizeof(value)))
			check_decoded(value, sizeof(value));
		p += n + (p[n] == ' ');
	}
}

/* A route is found by the path alone, and its parameters are parts of it. */
static void
check_route(const struct http_request *r)
{
	char param[2][72] = {"", ""};
	bool known = false;
	const struct route *route = routes_find(r->method, r->path, param, &known);

	require(!route || route->verb == r->method || r->method == VERB_HEAD);
	for (size_t i = 0; route && i < 2; i++)
		require(strlen(param[i]) < sizeof(param[i]) && !strchr(param[i], '/') &&
		    strstr(r->path, param[i]));
	check_words(r, route && route->query ? route->query : "");
}

/* No value may smuggle a line into a log or a response. */
static void
check_value(const char *s)
{
	for (; s && *s; s++)
		require(((unsigned char)*s >= 0x20 && *s != 0x7f) || *s == '\t');
}

static void
parse(const uint8_t *data, size_t len)
{
	struct http_request r;
	unsigned status = 0;
	struct why why = {""};

	/* A copy of its own, so that the sanitizer sees a read behind the head. */
	char *head = malloc(len ? len : 1);
	require(head != NULL);
	if (len > 0)
		memcpy(head, data, len);
	enum err e = http_request_parse(&r, head, len, &status, &why);
	if (e) {
		require(e == ERR_INVALID && status >= 400 && status < 600 && why.text[0]);
	} else {
		require(r.length < UINT64_C(1000000000000000000));
		require(r.has_length || r.length == 0);
		check_target(&r);
		check_route(&r);
		check_value(r.authorization);
		check_value(r.range);
		check_value(r.if_none_match);
		check_value(r.manifest);
		check_value(r.report);
		require(!r.manifest || strlen(r.manifest) < HTTP_VALUE_MAX);
	}
	http_request_deinit(&r);
	free(head);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t seen = 0, part = 0;
	size_t head = http_head_length((const char *)data, len, &seen);

	require(head <= len && seen <= len);
	/* The same end is found when the bytes come in two reads. */
	size_t first = http_head_length((const char *)data, len / 2, &part);
	require((first ? first : http_head_length((const char *)data, len, &part)) == head);
	if (head > 0) {
		require(data[head - 1] == '\n');
		parse(data, head);
	}
	if (head != len)
		parse(data, len);
	return 0;
}
