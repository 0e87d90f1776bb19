#ifndef ROUTE_H
#define ROUTE_H
#include "exchange.h"

/* The one table of route x role: what exists, who may, how it runs. */
enum route_kind {
	ROUTE_NOW, /* answers at once, on the I/O thread: nothing that waits */
	ROUTE_WORK, /* runs on a worker, may block on the store and the disk */
	ROUTE_SLOW, /* likewise, may take long: on workers of its own, which give way, one request of an owner at a time */
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
	bool trial; /* devices try out new certificates by it */
	bool bare; /* the body may be left out, and Content-Length with it */
	const char *query; /* words that its query may have, with spaces between them; NULL: none */
	size_t body_max; /* a smaller limit of its own; 0: none */
	void (*handle)(struct exchange *x);
	const struct stream_ops *stream;
	/* Frees x->state when the request is over, if it was set. For ROUTE_POLL; a stream has its own. */
	void (*drop)(struct exchange *x);
};

/* Not a path that anybody can ask for: where keys go that a restored state does not know (identity.claims), before their request. It is a
 * stream, whose `begin` decides on the head, and answers or sets x->again. */
#define ROUTE_CLAIM "claim"

/* The route for verb and path; fills param. NULL if there is none; then *path_known says whether another verb would do. */
typedef const struct route *(*route_finder)(
    enum http_verb verb, const char *path, char param[2][72], bool *path_known);

#endif
