#ifndef EXCHANGE_H
#define EXCHANGE_H
#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "http.h"
#include "loop.h"
#include "role.h"

struct json;
struct token;

/*
 * One request and its response. The connection owns it; while a worker or the store holds it, the connection leaves it
 * alone until exchange_done. Handlers fill the response through the exchange_* calls and never touch the connection.
 */
struct exchange;

/* Adds items of a list from the cursor on, until exchange_list_full: ERR_AGAIN, there are more. ERR_OK: that was all. On a worker. */
typedef enum err exchange_fill(struct exchange *x, void *cursor, struct why *why);

/* What of a response's list has not been printed yet. */
struct response_list {
	exchange_fill *fill; /* NULL: nothing */
	void *cursor;
	bool has_items;
	char tail[48]; /* a member behind the list */
	enum err e; /* of printing */
};

struct response {
	unsigned status; /* 0: none yet */
	const char *type; /* content type, static */
	struct buf body; /* of a list: the piece to be sent next */
	bool printed; /* it was made of values: that is work, where bytes are there already */
	struct response_list list;
	char extra[512]; /* header lines */
	const char *unfit; /* the header that had no room among them */
	/* Sent after the head when not NULL, [file_at, file_at + file_len); a reference of its own. */
	struct models_map *file;
	uint64_t file_at, file_len;
	bool close;
	enum problem_type problem;
	char why[352]; /* of a problem, for the log */
};

struct stream_ops;
struct exchange {
	struct loop_post post; /* used by exchange_done */
	struct loop *loop;
	void (*done)(struct exchange *x); /* connection's continuation, on its loop */
	void *conn;
	const struct services *services;
	const struct route *route;
	struct http_request request;
	char param[2][72]; /* path parameters in order */
	struct identity who;
	char peer[64]; /* address, for the log */
	uint32_t retry_after_s; /* of a 429; 0: a minute */
	struct buf body; /* whole body of a non-streaming route */
	bool wanted; /* streaming: begin() set it, the body may come */
	bool
	    again; /* streaming: begin() set it, who asks is to be looked at again, and the request routed anew, once */
	bool parked; /* polling: set by the handler to be called again */
	/* Polling: set by the handler when somebody has the exchange, who calls exchange_done: then, without a response, it is called again. */
	bool given;
	/* Polling: when the connection stops waiting and calls with expired = true. */
	uint64_t until_ms;
	bool expired;
	void *state; /* the handler's own */
	uint64_t
	    looked; /* rows, for the answer or the piece of it that is made; the connection charges for them */
	bool walks; /* it holds the one walk of `walker` */
	uint8_t walker[HASH_LEN];
	struct response response;
};

/* Handlers of a streaming route: begin and finish run on a worker, data on the connection's loop, drop on either. */
struct stream_ops {
	/* Decides on the head alone: sets a response (refusal, or an answer that needs no body) or `wanted`. */
	void (*begin)(struct exchange *x);
	/* Takes the next bytes of the body. Any other result than ERR_OK: the response says why, the body is refused. */
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
 * A JSON object that ends in a list, printed a piece at a time as the peer takes it: a list of any length holds the memory of a piece,
 * however long the peer does not read. Takes over `head`, the other members (NULL: none), and `cursor`, one block of malloc
 * without pointers of its own (NULL: there was no memory). On a worker, as `fill`.
 */
void exchange_list(
    struct exchange *x, struct json *head, const char *name, exchange_fill *fill, void *cursor);
/* For a fill: is the piece long enough, or has enough been looked at for it? Then the item goes into the next, and others have their
 * turn before. */
bool exchange_list_full(const struct exchange *x);
/* Frees `item`. */
void exchange_list_add(struct exchange *x, struct json *item);
/* For a fill that ends: `"key":value` behind the list, or null. */
void exchange_list_tail(struct exchange *x, const char *key, const uint64_t *value);
/* The next piece, in place of the one that was sent; an error is in response.list.e. */
void exchange_list_next(struct exchange *x);
void exchange_bytes(
    struct exchange *x, unsigned status, const char *type, const void *data, size_t len);
/* A number of the query, up to max: *out stays if it is not there. False: it is something else, which is answered. */
bool exchange_number(struct exchange *x, const char *name, uint64_t max, uint64_t *out);
/* Is "name=1" in the query? False: it has another value, which is answered. */
bool exchange_flag(struct exchange *x, const char *name, bool *out);
/* So many rows, or what costs as much, were looked at for the answer: they are paid for, whether or not it shows them. */
void exchange_looked(struct exchange *x, uint64_t rows);
/* Begins a look that may be long: of an identity one at a time, until its last row is printed or the request is over. False: it is
 * answered. */
bool exchange_walk(struct exchange *x);
/* Adds a header line. An answer whose lines do not fit is refused in the end. */
void exchange_header(struct exchange *x, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What the connection calls before it sends a response: one that lacks a header becomes a problem, which is ours. */
void exchange_finish(struct exchange *x);
/* Sets a problem+json response. */
void exchange_problem(struct exchange *x, enum problem_type type, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Maps an internal error: what passes to 503/507 with Retry-After, ERR_NOTFOUND to not-found, else internal. Notes it as the
 * coordinator's health. */
void exchange_failed(struct exchange *x, enum err e, const struct why *why);
/* The token of "Authorization: Bearer ..."; false if there is none, or a malformed one. */
bool exchange_bearer(const struct exchange *x, struct token *out);
/* Has it shown the certificate of a device that the registry knows, with a key that is or was that device's? */
bool exchange_is_device(const struct exchange *x);
/* Who asks, for the log: "device:ID", "token:ID", or the peer: of the admin socket, or nobody who is known. */
#define EXCHANGE_ACTOR_MAX 144
void exchange_actor(const struct exchange *x, char out[EXCHANGE_ACTOR_MAX]);
/* Hands the exchange back to its connection. Any thread; the caller does not touch it afterwards. */
void exchange_done(struct exchange *x);
/* Frees what request and response hold and makes it empty. */
void exchange_reset(struct exchange *x);

#endif
