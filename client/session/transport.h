#ifndef TRANSPORT_H
#define TRANSPORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"
#include "request_id.h"

/*
 * HTTP exchanges, one at a time, over connections that are kept. The only place that knows libcurl.
 *
 * HTTP/1.1; https with full verification against the given CA alone (the system's are not trusted), or plain http
 * over a Unix socket. No redirects, no cookies, no decompression. Every call blocks until the exchange is over, a
 * limit cut it or `cancel` said so. One thread at a time.
 */
struct transport;
struct hash;

struct transport_options {
	const char *unix_socket; /* NULL: TCP */
	const char *ca_pem; /* NULL: the system's trust (mirrors) or none with `insecure` */
	const char *cert_pem; /* own certificate and key, or both NULL */
	const char *key_pem;
	bool insecure; /* accept any certificate: only for GET /v1/ca, whose hash is checked */
	/* May be NULL; called about once a second and after signals. */
	bool (*cancel)(void *context);
	void *context;
};

/* Where the body of a 200 or 206 answer goes; other answers go to transport_answer.body. With `at` above zero the request
 * asks for the bytes from there on, so that the same request again goes on where the last one broke. */
struct transport_sink {
	int fd;
	uint64_t at; /* next byte's offset; grows */
	uint64_t max; /* the answer is cut with ERR_LIMIT when it would pass this offset */
	struct hash *hash; /* running, or NULL */
	bool restarted; /* a 200 came although a range was asked: the sink began again at 0 */
};

struct transport_request {
	const char *method; /* GET, HEAD, POST, PUT, PATCH, DELETE */
	const char *url;
	const char *const *headers; /* "Name: value", NULL-terminated, or NULL */
	const void *body; /* in memory, if body_bytes is 0 */
	size_t body_len;
	int body_fd; /* a file, if body_bytes > 0; the request asks with Expect: 100-continue first */
	uint64_t body_at, body_bytes;
	size_t answer_max; /* 0: 1 MiB */
	struct transport_sink *sink; /* may be NULL */
	double idle_s; /* no byte for so long is ERR_TIMEOUT; 0: 60 */
	long least_rate; /* slower than so many bytes per second over idle_s is ERR_TIMEOUT; 0: 1 */
	double connect_s; /* name, TCP and TLS together; 0: 20 */
};

/* What is wrong with the peer's certificate. */
enum transport_distrust {
	TRANSPORT_TRUSTED, /* nothing, or no certificate was checked */
	TRANSPORT_EXPIRED, /* by this machine's clock */
	TRANSPORT_NOT_YET, /* not valid yet by this machine's clock */
	TRANSPORT_NAME, /* not for the name asked for */
	TRANSPORT_ISSUER, /* not of the given CA */
	TRANSPORT_OTHER,
};

struct transport_answer {
	long status;
	double retry_after_s; /* -1: none given */
	uint64_t sent_bytes, received_bytes; /* heads and bodies, without TLS */
	bool has_offset; /* an Upload-Offset came */
	uint64_t offset;
	bool in_memory; /* "Rivulet-Spool: memory" came */
	/* What the coordinator calls the request: of the answer, or where none came of a 100 Continue before; "" if it said nothing, or nothing
	 * that request_id_valid takes. And the request with which it says that the upload asked for began (Rivulet-Began). */
	char request[REQUEST_ID_MAX], began[REQUEST_ID_MAX];
	int64_t date; /* the peer's clock, Unix seconds; 0: not said */
	double date_at; /* the second of clock_elapsed_ms at which `date` came */
	enum transport_distrust distrust;
	/* Of the peer's certificate with an `insecure` transport; "" if there was none. */
	char issuer[128], subject[128], expires[64];
	struct buf body;
};

/* Copies the options' strings: they may be freed after the call. */
ERR_MUST_USE enum err transport_new(
    struct transport **out, const struct transport_options *options, struct why *why);
void transport_free(struct transport *t);

/* One exchange; `out` is set up here and belongs to the caller (transport_answer_deinit), also on failure.
 * ERR_OK whatever the status. ERR_CLOSED unreachable or cut, ERR_TIMEOUT, ERR_DENIED the peer's or our certificate
 * does not check, ERR_LIMIT answer too large, ERR_CORRUPT a part that was not asked for, ERR_AGAIN cancelled, ERR_IO
 * and ERR_NOSPACE from the sink. */
ERR_MUST_USE enum err transport_do(struct transport *t, const struct transport_request *request,
    struct transport_answer *out, struct why *why);
void transport_answer_deinit(struct transport_answer *a);

#endif
