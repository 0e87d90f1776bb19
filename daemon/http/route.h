#ifndef ROUTE_H
#define ROUTE_H
#include "exchange.h"

/* A row of the table of routes (api/routes.c): what can be asked for, who may ask, how the request runs. */
enum route_kind {
	ROUTE_NOW, /* answers at once, on the I/O thread: nothing that waits */
	ROUTE_WORK, /* runs on a worker, may block on the store and the disk */
	/* As ROUTE_WORK, may take long: on other workers of low priority, one request of an owner at a time. */
	ROUTE_SLOW,
	ROUTE_ASIDE, /* as ROUTE_WORK, on a worker of its own that nothing else keeps busy, one request of an owner at a time */
	ROUTE_POLL, /* on the I/O thread; may park the exchange */
	ROUTE_STREAM, /* the body goes piece by piece to stream_ops */
};

struct route {
	enum http_verb verb;
	const char *pattern; /* "{}" stands for one path segment */
	unsigned roles; /* any of these */
	enum route_kind kind;
	bool body; /* takes a JSON body of at most limits.json_bytes */
	bool probe; /* also over plain HTTP, on the listener for probes */
	bool trial; /* devices try out new certificates with this request */
	bool
	    reads; /* parked, it waits for a change of a job (services.changed), and not for work */
	bool bare; /* the body may be left out, and Content-Length with it */
	const char *query; /* names that the query may have, separated by spaces; NULL: none */
	size_t body_max; /* a limit of the body below limits.json_bytes; 0: none */
	void (*handle)(struct exchange *x);
	const struct stream_ops *stream;
	/* For ROUTE_POLL: frees x->state, if set, when the request is over. A stream has stream_ops.drop. */
	void (*drop)(struct exchange *x);
};

/* A path that no client can ask for: a request with a key that a restored state does not know (identity.claims) is first routed here. The
 * route is a stream, whose `begin` decides on the head, and sets a response or x->again. */
#define ROUTE_CLAIM "claim"

struct route_table {
	const struct route *rows;
	size_t count;
	/* The route for verb and path; fills param. NULL if there is none; then *path_known says whether another verb would do. */
	const struct route *(*find)(
	    enum http_verb verb, const char *path, char param[2][72], bool *path_known);
};

#endif
