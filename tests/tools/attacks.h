#ifndef ATTACKS_H
#define ATTACKS_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What attacker.c can do, one row each. */

enum layer {
	LAYER_TCP, /* no TLS */
	LAYER_HELLO, /* a ClientHello and no more of a handshake */
	LAYER_TLS, /* a handshake, without a certificate */
	LAYER_DEVICE, /* the same with one: an enrolled device */
	LAYER_RECORDS, /* a handshake, then records without data */
};
enum after {
	AFTER_HOLD, /* all said: hold the connection until the coordinator ends it */
	AFTER_REPEAT, /* say it again on the same connection */
	AFTER_CHURN, /* close and connect again */
	AFTER_ANSWER, /* wait for the first answer, then connect again with the next text */
};

struct attack {
	const char *name;
	enum layer layer;
	unsigned slots; /* connections at a time */
	/* Said in turn; NULL: nothing. Escapes as attacks_text knows them. */
	const char *const *texts;
	enum after after;
	unsigned trickle_ms; /* one byte so often; 0: all at once */
	bool deaf; /* never reads */
	bool pure; /* a 2xx answer is a success of the attack */
};

#define H "Host: localhost\r\n"
/* What a smuggler wants answered: it would be a 200. */
#define PRIZE "GET /v1/ca HTTP/1.1\r\n" H "\r\n"
#define JOIN "POST /v1/join HTTP/1.1\r\n" H
#define OFFER "POST /v1/tasks HTTP/1.1\r\n" H

static const char *const say_slow_head[] = {
    "GET /healthz HTTP/1.1\r\n" H "X: {30000*x}\r\n\r\n", NULL};
static const char *const say_slow_body[] = {
    JOIN "Authorization: Bearer x\r\nContent-Length: {len}\r\n\r\n{8000* }", NULL};
static const char *const say_slow_offer[] = {OFFER "Content-Length: {len}\r\n\r\n{60000* }", NULL};
static const char *const say_pipeline[] = {"GET /healthz HTTP/1.1\r\n" H
					   "\r\nGET /v1/ca HTTP/1.1\r\n" H
					   "\r\nGET /none HTTP/1.1\r\n" H "\r\n",
    NULL};
static const char *const say_health[] = {"GET /healthz HTTP/1.1\r\n" H "\r\n", NULL};
static const char *const say_status[] = {"GET /v1/status HTTP/1.1\r\n" H "\r\n", NULL};
static const char *const say_tokens[] = {JOIN
    "Authorization: Bearer rvt1-{hex:16}-{hex:64}-{hex:64}\r\nContent-Length: "
    "{len}\r\n\r\n{\"csr\":\"\",\"name\":\"x\"}",
    "GET /v1/status HTTP/1.1\r\n" H "Authorization: Bearer rvt1-{hex:16}-{hex:64}-{hex:64}\r\n\r\n",
    "GET /v1/status HTTP/1.1\r\n" H "Authorization: Basic {hex:64}\r\n\r\n", NULL};

static const char *const say_huge_heads[] = {"GET /healthz HTTP/1.1\r\n" H "X: {200000*x}",
    "GET /healthz HTTP/1.1\r\n" H "{20000*\"a:b\r\n\"}\r\n",
    "GET /{100000*a} HTTP/1.1\r\n" H "\r\n", "{100000*A}",
    "GET /healthz HTTP/1.1\r\n" H "Rivulet-Manifest: :{60000*A}:\r\n\r\n",
    "GET /healthz HTTP/1.1\r\n" H "Rivulet-Report: :{30000*A}:\r\n\r\n", NULL};

static const char *const say_chunked[] = {JOIN
    "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{100000*x}" PRIZE,
    JOIN "Transfer-Encoding: chunked\r\n\r\n1;{20000*e}\r\nx\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" PRIZE,
    OFFER "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n" PRIZE, NULL};

/* After each stands what would be answered if the two sides of a proxy did not agree where the request ends. */
static const char *const say_smuggling[] = {
    /* two lengths, in every spelling */
    JOIN "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n" PRIZE,
    JOIN "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" PRIZE,
    JOIN "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" PRIZE,
    JOIN "Content-Length: 0, 5\r\n\r\n" PRIZE, JOIN "Content-Length: 5, 5\r\n\r\nhello" PRIZE,
    JOIN "Content-Length: +5\r\n\r\nhello" PRIZE, JOIN "Content-Length: -1\r\n\r\n" PRIZE,
    JOIN "Content-Length: 0x5\r\n\r\nhello" PRIZE, JOIN "Content-Length: 5 5\r\n\r\nhello" PRIZE,
    JOIN "Content-Length: 05 \t\r\nContent-Length: 4\r\n\r\nhello" PRIZE,
    JOIN "Content-Length: 18446744073709551616\r\n\r\n" PRIZE,
    JOIN "Content-Length: 99999999999999999999999\r\n\r\n" PRIZE,
    JOIN "Content-Length:\r\n\r\n" PRIZE, JOIN "Content-Length: 5.0\r\n\r\nhello" PRIZE,
    JOIN "Content-Length: 1e1\r\n\r\nhello" PRIZE, JOIN "Content_Length: 5\r\n\r\nhello" PRIZE,
    /* codings that one side may not see */
    JOIN "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello" PRIZE,
    JOIN "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer-Encoding: chun\x0bked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "TRANSFER-ENCODING: CHUNKED\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" PRIZE,
    JOIN "Transfer{nul}-Encoding: chunked\r\n\r\n0\r\n\r\n" PRIZE,
    /* lines and fields that two parsers end in two places */
    "GET /healthz HTTP/1.1\n" H "\n" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H "X : a\r\n\r\n" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H ": a\r\n\r\n" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H "X\r\n\r\n" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H "X: a{nul}b\r\n\r\n" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H H "\r\n" PRIZE,
    "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n" PRIZE, "GET /healthz HTTP/1.1\r\n\r\n" PRIZE,
    "GET  /healthz HTTP/1.1\r\n" H "\r\n" PRIZE, "GET /healthz  HTTP/1.1\r\n" H "\r\n" PRIZE,
    "GET /healthz HTTP/1.1 \r\n" H "\r\n" PRIZE, "GET /healthz HTTP/1.1\r\r\n" H "\r\n" PRIZE,
    "GET /healthz\r\n\r\n" PRIZE, "GET /healthz http/1.1\r\n" H "\r\n" PRIZE,
    "GET /healthz HTTP/1.01\r\n" H "\r\n" PRIZE, "GET /healthz HTTP/2.0\r\n" H "\r\n" PRIZE,
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" PRIZE,
    "GET http://other/healthz HTTP/1.1\r\n" H "\r\n" PRIZE,
    "CONNECT localhost:1 HTTP/1.1\r\n" H "\r\n" PRIZE,
    "G{nul}T /healthz HTTP/1.1\r\n" H "\r\n" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello" PRIZE,
    "GET /healthz HTTP/1.1\r\n" H "Expect: 200-ok\r\n\r\n" PRIZE, NULL};

static const char *const say_paths[] = {"GET /../etc/passwd HTTP/1.1\r\n" H "\r\n",
    "GET /v1/models/../../keys/ca.key HTTP/1.1\r\n" H "\r\n",
    "GET /v1/models/%2e%2e%2fkeys HTTP/1.1\r\n" H "\r\n",
    "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" H "\r\n",
    "GET /healthz{nul}.html HTTP/1.1\r\n" H "\r\n", "GET /healthz%00 HTTP/1.1\r\n" H "\r\n",
    "GET //healthz HTTP/1.1\r\n" H "\r\n", "GET /healthz/ HTTP/1.1\r\n" H "\r\n",
    "GET /./healthz HTTP/1.1\r\n" H "\r\n", "GET /v1/../healthz HTTP/1.1\r\n" H "\r\n",
    "GET /healthz;x HTTP/1.1\r\n" H "\r\n", "GET \\healthz HTTP/1.1\r\n" H "\r\n",
    "GET /healthz#x HTTP/1.1\r\n" H "\r\n", "GET healthz HTTP/1.1\r\n" H "\r\n",
    "GET * HTTP/1.1\r\n" H "\r\n", "OPTIONS * HTTP/1.1\r\n" H "\r\n",
    "GET /HEALTHZ HTTP/1.1\r\n" H "\r\n", "GET /h\xc3\xa9 HTTP/1.1\r\n" H "\r\n",
    "GET /v1/devices/{nul} HTTP/1.1\r\n" H "\r\n", "GET /v1/jobs/..%5c..%5c HTTP/1.1\r\n" H "\r\n",
    "GET /v1/deltas/{900*a} HTTP/1.1\r\n" H "\r\n", "GET /v1/ca?{900*a} HTTP/9.9\r\n" H "\r\n",
    NULL};

#define BODY "Content-Length: {len}\r\n\r\n"
static const char *const say_json[] = {OFFER BODY "{30000*[}", OFFER BODY "{30*[}1{30*]}",
    OFFER BODY "{10000*\"{\"a\":\"}", OFFER BODY "[{30000*\"1,\"}1]",
    OFFER BODY "[{20000*\"[],\"}1]", OFFER BODY "{\"data\":[{16000*\"{},\"}{}]}",
    OFFER BODY "{\"agent\":\"{60000*x}\"}", OFFER BODY "{\"agent\":\"{10000*\"\\u0000\"}\"}",
    OFFER BODY "{\"protocol\":{60000*9}}", OFFER BODY "{\"protocol\":1e{60000*9}}",
    OFFER BODY "{\"wait\":-0.{60000*0}1}", OFFER BODY "{\"protocol\":18446744073709551617}",
    OFFER BODY "{{5000*\"\"a\":1,\"}\"b\":2}", OFFER BODY "\"{60000*\xff}\"",
    OFFER BODY "{60000* }", OFFER BODY "{60000*\xf0}",
    "POST /v1/tasks/{hex:32}/abort HTTP/1.1\r\n" H BODY "{\"reason\":\"{8000*x}\"}",
    "POST /v1/join HTTP/1.1\r\n" H "Authorization: Bearer rvt1-{hex:16}-{hex:64}-{hex:64}\r\n" BODY
    "{8000*[}",
    "POST /v1/join HTTP/1.1\r\n" H "Authorization: Bearer rvt1-{hex:16}-{hex:64}-{hex:64}\r\n" BODY
    "{\"csr\":\"{8000*A}\"}",
    NULL};

/* A job document, of up to 1 MiB, by somebody who may submit one. */
#define SUBMIT "POST /v1/jobs HTTP/1.1\r\n" H "Authorization: Bearer {token}\r\n" BODY
#define REST \
	"\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"digits\",\"shape\":[1,28,28]," \
	"\"classes\":10}," \
	"\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}}," \
	"\"round\":{\"goal\":1}}"
static const char *const say_jobs[] = {SUBMIT "{1000000*[}", SUBMIT "{200000*\"{\"a\":\"}",
    SUBMIT "{\"params\":{500000*[}{500000*]}}", SUBMIT "{\"params\":{40*[}1{40*]}}",
    SUBMIT "{{170000*\"\"a\":1,\"}\"b\":2}", SUBMIT "{\"params\":{{170000*\"\"a\":1,\"}\"b\":2}}",
    SUBMIT "{{keys:80000}\"z\":1}", SUBMIT "{\"params\":{{keys:80000}\"z\":1}}",
    SUBMIT "{\"tensors\":{{keys:80000}\"z\":1}}", SUBMIT "[{500000*\"1,\"}1]",
    SUBMIT "{\"params\":[{340000*\"[],\"}1]}",
    SUBMIT "{\"model\":{\"layers\":[{90000*\"{\"type\":1},\"}{}]}}",
    SUBMIT "{\"seed\":{1000000*9}}", SUBMIT "{\"seed\":1e{1000000*9}}",
    SUBMIT "{\"seed\":-0.{1000000*0}1}", SUBMIT "{\"seed\":18446744073709551617}",
    SUBMIT "{\"round\":{\"goal\":1e300,\"deadline_s\":-1e300}}",
    SUBMIT "{\"name\":\"{1000000*x}\"}", SUBMIT "{\"name\":\"{160000*\"\\u0000\"}\"}",
    SUBMIT "{\"name\":\"{1000000*\xff}\"}",
    SUBMIT "{\"select\":{\"devices\":[{250000*\"\"\",\"}\"\"]}}", SUBMIT "{1040000* }",
    SUBMIT "{1100000* }",
    /* models of a hundred bytes that would fill a disk, and more layers than a stack holds */
    SUBMIT "{\"name\":\"x\",\"model\":{\"layers\":[{\"type\":\"flatten\"},"
	   "{\"type\":\"linear\",\"name\":\"a\",\"out\":4000000000}]," REST,
    SUBMIT "{\"name\":\"x\",\"model\":{\"layers\":[{\"type\":\"flatten\"},"
	   "{\"type\":\"linear\",\"name\":\"a\",\"out\":1000000},"
	   "{\"type\":\"linear\",\"name\":\"b\",\"out\":1000000}]," REST,
    SUBMIT "{\"name\":\"x\",\"model\":{\"layers\":[{50000*\"{\"type\":\"relu\" "
	   "},\"}{\"type\":\"flatten\"}]," REST,
    NULL};

/* Good jobs, each another one: for a device that does no work. */
#define GOOD(layers) \
	SUBMIT "{\"name\":\"x-{hex:16}\",\"select\":{\"devices\":[\"crowd\"]},\"model\":{" \
	       "\"layers\":[" \
	       "{\"type\":\"flatten\"}," layers \
	       "{\"type\":\"linear\",\"name\":\"out\",\"out\":10}]," REST
static const char *const say_good_jobs[] = {GOOD(""),
    GOOD("{\"type\":\"linear\",\"name\":\"a\",\"out\":256},{\"type\":\"relu\"},"),
    GOOD("{100*\"{\"type\":\"relu\"},\"}"),
    SUBMIT "{\"name\":\"x-{hex:16}\",\"params\":{\"note\":\"{900000*x}\"},"
	   "\"select\":{\"devices\":[\"crowd\"]},\"model\":{\"layers\":[{\"type\":\"flatten\"},"
	   "{\"type\":\"linear\",\"name\":\"out\",\"out\":10}]," REST,
    NULL};

/* All lists there are, by somebody who may read them and does not. */
#define LIST(path) "GET " path " HTTP/1.1\r\n" H "Authorization: Bearer {token}\r\n\r\n"
static const char *const say_lists[] = {LIST("/v1/jobs"), LIST("/v1/audit"), LIST("/v1/devices"),
    LIST("/v1/status"), LIST("/v1/audit?from=30"), NULL};

/* Long looks through the audit log, and what else looks at much, each as soon as the one before is said. */
static const char *const say_walks[] = {LIST("/v1/audit?by=owner:nobody"),
    LIST("/v1/audit?by=token:0123456789abcdef&from=1000"),
    LIST("/v1/audit?by=device:crowd&from=20000"), LIST("/v1/fleet?data=digits"),
    LIST("/v1/audit?from=50000"), LIST("/v1/find?kind=device&word=newcomer"), LIST("/v1/devices"),
    NULL};

static const struct attack attacks[] = {
    {"half-open", LAYER_TCP, 3000, NULL, AFTER_HOLD, 0, true, false},
    {"hello-and-wait", LAYER_HELLO, 1000, NULL, AFTER_HOLD, 0, true, false},
    {"hello-and-go", LAYER_HELLO, 64, NULL, AFTER_CHURN, 0, true, false},
    {"handshakes", LAYER_TLS, 64, NULL, AFTER_CHURN, 0, false, false},
    {"idle", LAYER_TLS, 2500, NULL, AFTER_HOLD, 0, false, false},
    {"slow-head", LAYER_TLS, 1000, say_slow_head, AFTER_HOLD, 200, false, false},
    {"slow-body", LAYER_TLS, 1000, say_slow_body, AFTER_HOLD, 200, false, false},
    {"slow-offer", LAYER_DEVICE, 100, say_slow_offer, AFTER_HOLD, 200, false, false},
    {"renegotiation", LAYER_RECORDS, 16, NULL, AFTER_REPEAT, 0, true, false},
    {"pipelining", LAYER_TLS, 16, say_pipeline, AFTER_REPEAT, 0, false, false},
    {"pipelining-deaf", LAYER_TLS, 200, say_pipeline, AFTER_REPEAT, 0, true, false},
    {"huge-heads", LAYER_TLS, 16, say_huge_heads, AFTER_ANSWER, 0, false, true},
    {"chunked", LAYER_TLS, 16, say_chunked, AFTER_ANSWER, 0, false, true},
    {"smuggling", LAYER_TLS, 16, say_smuggling, AFTER_ANSWER, 0, false, true},
    {"paths", LAYER_TLS, 16, say_paths, AFTER_ANSWER, 0, false, true},
    {"json-bombs", LAYER_DEVICE, 16, say_json, AFTER_ANSWER, 0, false, true},
    {"job-bombs", LAYER_TLS, 16, say_jobs, AFTER_ANSWER, 0, false, true},
    {"good-jobs", LAYER_TLS, 16, say_good_jobs, AFTER_REPEAT, 0, false, false},
    {"unread-lists", LAYER_TLS, 200, say_lists, AFTER_REPEAT, 0, true, false},
    {"walks", LAYER_TLS, 16, say_walks, AFTER_REPEAT, 0, false, false},
    {"bad-tokens", LAYER_TLS, 32, say_tokens, AFTER_REPEAT, 0, false, true},
    {"requests", LAYER_DEVICE, 100, say_status, AFTER_REPEAT, 0, false, false},
    {"hoard", LAYER_DEVICE, 600, say_health, AFTER_HOLD, 0, false, false},
};

static inline const struct attack *
attacks_find(const char *name)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		if (strcmp(attacks[i].name, name) == 0)
			return &attacks[i];
	return NULL;
}

static inline void
attacks_list(void)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
		printf("%s %s\n", attacks[i].name,
		    attacks[i].texts == say_jobs	    ? "submitter"
			: attacks[i].texts == say_good_jobs ? "owner"
			: attacks[i].texts == say_lists	    ? "reader"
			: attacks[i].texts == say_walks	    ? "walker"
			: attacks[i].layer == LAYER_DEVICE  ? "device"
							    : "nobody");
}

/* HOME/token, without the end of its line; "" if there is none. */
static inline const char *
attacks_token(const char *home)
{
	static char token[256];
	char path[1024];

	if (home) {
		snprintf(path, sizeof(path), "%s/token", home);
		FILE *f = fopen(path, "r");
		if (f && fgets(token, sizeof(token), f))
			token[strcspn(token, "\n")] = '\0';
		if (f)
			fclose(f);
	}
	return token;
}

/* --- texts */

struct out {
	char *data;
	size_t len, room;
};

static inline void
put(struct out *o, const char *p, size_t n)
{
	if (o->len + n + 1 > o->room) {
		o->room = 2 * (o->len + n + 1);
		o->data = realloc(o->data, o->room);
		if (!o->data)
			exit(2);
	}
	memcpy(o->data + o->len, p, n);
	o->len += n;
	o->data[o->len] = '\0';
}

/* "{hex:N}", "{keys:N}", "{token}", "{N*...}" and "{nul}" at p; returns what is behind, or NULL if there is none of them. */
static inline const char *
expand(struct out *o, const char *p)
{
	char *end;

	if (strncmp(p, "{nul}", 5) == 0) {
		put(o, "", 1);
		return p + 5;
	}
	if (strncmp(p, "{hex:", 5) == 0) {
		for (long n = strtol(p + 5, &end, 10); n > 0; n--)
			put(o, &"0123456789abcdef"[rand() & 15], 1);
		return end + 1;
	}
	if (strncmp(p, "{token}", 7) == 0) {
		put(o, attacks_token(NULL), strlen(attacks_token(NULL)));
		return p + 7;
	}
	if (strncmp(p, "{keys:", 6) == 0) {
		char key[32];
		for (long n = strtol(p + 6, &end, 10); n > 0; n--)
			put(o, key, (size_t)snprintf(key, sizeof(key), "\"k%ld\":1,", n));
		return end + 1;
	}
	long n = strtol(p + 1, &end, 10);
	if (end == p + 1 || *end != '*' || n <= 0)
		return NULL;
	const char *what = end + 1;
	size_t len = 1;
	if (*what == '"' && what[1] != '}') {
		what++;
		len = (size_t)(strstr(what, "\"}") - what);
		end = (char *)what + len + 2;
	} else {
		end = (char *)what + 2;
	}
	while (n-- > 0)
		put(o, what, len);
	return end;
}

/* Expands a text: {N*c} is the character c N times, {N*"text"} the text N times, {hex:N} N random digits, {keys:N} N members
 * of an object with different keys, {token} that of attacks_token, {nul} a zero byte, and the first {len} the number of bytes behind the first empty line. The caller frees it. */
static inline char *
attacks_text(const char *text, size_t *len)
{
	struct out o = {NULL, 0, 0}, whole = {NULL, 0, 0};
	char number[24];

	put(&o, "", 0);
	for (const char *p = text, *next; *p; p = next) {
		next = *p == '{' ? expand(&o, p) : NULL;
		if (!next) {
			put(&o, p, 1);
			next = p + 1;
		}
	}
	char *mark = memmem(o.data, o.len, "{len}", 5);
	if (!mark) {
		*len = o.len;
		return o.data;
	}
	char *body = memmem(o.data, o.len, "\r\n\r\n", 4);
	snprintf(number, sizeof(number), "%zu", o.len - (size_t)(body + 4 - o.data));
	put(&whole, o.data, (size_t)(mark - o.data));
	put(&whole, number, strlen(number));
	put(&whole, mark + 5, o.len - (size_t)(mark + 5 - o.data));
	free(o.data);
	*len = whole.len;
	return whole.data;
}

#endif
