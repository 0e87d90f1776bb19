#ifndef EXCHANGE_H
#define EXCHANGE_H
#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "http.h"
#include "loop.h"
#include "request_id.h"
#include "role.h"

struct json;
struct token;

/*
 * One request and its response. The connection owns it; while a worker or the store holds it, the connection leaves it
 * alone until exchange_done. Handlers fill the response through the exchange_* calls and never touch the connection.
 */
struct exchange;

/* Adds items of a list from the cursor on, until exchange_list_full or the list's end. ERR_AGAIN: more items are left; ERR_OK: none. Runs
 * on a worker. */
typedef enum err exchange_fill(struct exchange *x, void *cursor, struct why *why);

/* The rest of a response's list that has not been printed yet. */
struct response_list {
	exchange_fill *fill; /* NULL: nothing */
	void *cursor;
	bool has_items;
	char tail[96]; /* a member of the object, printed behind the list */
	enum err e; /* of printing; ERR_OK so far */
};

struct response {
	unsigned status; /* 0: none yet */
	const char *type; /* content type, static */
	struct buf body; /* of a list: the piece to be sent next */
	/* The body was printed from values, and its bytes are charged to the identity. */
	bool printed;
	struct response_list list;
	char extra[512]; /* header lines */
	const char *unfit; /* the header that had no room among them */
	/* Sent after the head when not NULL, [file_at, file_at + file_len); a reference of its own. */
	struct models_map *file;
	uint64_t file_at, file_len;
	bool close;
	enum problem_type problem;
	char why[352]; /* why the request was refused, for the log */
};

struct stream_ops;
struct exchange {
	struct loop_post post; /* used by exchange_done */
	struct loop *loop;
	void (*done)(struct exchange *x); /* the connection's continuation, called on its loop */
	void *conn;
	const struct services *services;
	const struct route *route;
	const struct route
	    *asked; /* the row for verb and path, also of a request that it refuses; or NULL */
	char id[REQUEST_ID_MAX]; /* Rivulet-Request of the answer; "": none yet */
	struct http_request request;
	char param[2][72]; /* path parameters in order */
	struct identity who;
	char peer[64]; /* address, for the log */
	uint32_t retry_after_s; /* Retry-After of a 429; 0: a minute */
	struct buf body; /* whole body of a non-streaming route */
	bool wanted; /* streaming: set by begin() if the body may come */
	/* Streaming: set by begin() to have the sender's identity looked up again and the request routed anew, once. */
	bool again;
	bool parked; /* polling: set by the handler to be called again */
	/* Polling: set by the handler when it has passed the exchange to somebody who will call exchange_done; if there is no response
	 * then, the handler is called again. */
	bool given;
	/* Polling: when, by clock_ms, the connection stops waiting and calls the handler with expired = true. */
	uint64_t until_ms;
	bool expired;
	void *state; /* the handler's own */
	/* Rows looked at for the answer, or for the present piece of a list; the connection charges the identity for them. */
	uint64_t looked;
	bool walks; /* exchange_walk has begun the one walk that identity `walker` may have */
	uint8_t walker[HASH_LEN];
	struct response response;
};

/* Handlers of a streaming route: begin and finish run on a worker, data on the connection's loop, drop on either. */
struct stream_ops {
	/* Decides on the head alone: sets a response (refusal, or an answer that needs no body), or `wanted`, or `again`. */
	void (*begin)(struct exchange *x);
	/* Takes the next bytes of the body. With any result but ERR_OK the body is refused, and `data` has set the response. */
	enum err (*data)(struct exchange *x, const void *p, size_t len);
	/* The body is complete. Must end in exchange_done, here or on another thread later. */
	void (*finish)(struct exchange *x);
	/* The request is over: frees state, removes what was left of an unfinished body. Always called after begin. */
	void (*drop)(struct exchange *x);
};

/* Sets an empty, JSON or bytes response. exchange_json frees `v`. */
void exchange_status(struct exchange *x, unsigned status);
void exchange_json(struct exchange *x, unsigned status, struct json *v);
/*
 * Answers with a JSON object whose last member is the list `name`, printed a piece at a time as the peer reads: a list of any length
 * takes the memory of one piece, however long the peer does not read. Takes over `head`, the other members (NULL: none), and `cursor`,
 * one block of malloc without pointers of its own (NULL: there was no memory). Call on a worker; `fill` runs on a worker, too.
 */
void exchange_list(
    struct exchange *x, struct json *head, const char *name, exchange_fill *fill, void *cursor);
/* For a fill: does the piece have enough bytes, or were enough rows looked at for it? Then the next item belongs to the next piece, and
 * other requests have their turn in between. */
bool exchange_list_full(const struct exchange *x);
/* Frees `item`. */
void exchange_list_add(struct exchange *x, struct json *item);
/* For a fill that ends: `"key":value` behind the list, or null. */
void exchange_list_tail(struct exchange *x, const char *key, const uint64_t *value);
/* Likewise `"key":"text"`; text is plain ASCII without quotes, of at most 64 bytes. */
void exchange_list_tail_text(struct exchange *x, const char *key, const char *text);
/* Prints the list's next piece in place of the piece that was sent; an error is in response.list.e. */
void exchange_list_next(struct exchange *x);
void exchange_bytes(
    struct exchange *x, unsigned status, const char *type, const void *data, size_t len);
/* *out: the number `name` of the query, up to max; unchanged if the query has no such word. False: the value is no such number, and the
 * problem response is set. */
bool exchange_number(struct exchange *x, const char *name, uint64_t max, uint64_t *out);
/* *out: is "name=1" in the query? False: the word has another value, and the problem response is set. */
bool exchange_flag(struct exchange *x, const char *name, bool *out);
/* Charges the identity for rows looked at, or work that costs as much, whether or not the answer shows the rows. */
void exchange_looked(struct exchange *x, uint64_t rows);
/* Begins a walk through many rows, of which an identity has one at a time: it lasts until the list is printed or the request is over.
 * False: the identity walks already, and the problem response is set. */
bool exchange_walk(struct exchange *x);
/* Adds a header line. An answer whose lines do not fit is refused in the end. */
void exchange_header(struct exchange *x, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What the connection calls before it sends a response: one that lacks a header becomes a problem, which is ours. */
void exchange_finish(struct exchange *x);
/* Sets a problem+json response. */
void exchange_problem(struct exchange *x, enum problem_type type, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets the problem response of an internal error: 503 or 507 with Retry-After for an error that passes, not-found for ERR_NOTFOUND, else
 * internal. Reports the error to health. */
void exchange_failed(struct exchange *x, enum err e, const struct why *why);
/* The token of "Authorization: Bearer ..."; false if there is none, or a malformed one. */
bool exchange_bearer(const struct exchange *x, struct token *out);
/* Has the peer shown the certificate of a device that the registry knows, with a key that is or was that device's? */
bool exchange_is_device(const struct exchange *x);
/* Who asks, for the log: "device:ID", "token:ID" (with " owner:NAME" if it has one), "key:HASH" for an unknown certificate, or the peer's
 * address, for the admin socket or nobody known. */
#define EXCHANGE_ACTOR_MAX 144
void exchange_actor(const struct exchange *x, char out[EXCHANGE_ACTOR_MAX]);
/* Hands the exchange back to its connection. Any thread; the caller does not touch it afterwards. */
void exchange_done(struct exchange *x);
/* Frees what request and response hold and makes the exchange ready for another request. */
void exchange_reset(struct exchange *x);

#endif
