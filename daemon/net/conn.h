#ifndef CONN_H
#define CONN_H
#include <stdatomic.h>

#include "pace.h"
#include "peers.h"
#include "report.h"
#include "route.h"

/*
 * One connection: TLS, heads, bodies, responses, timeouts. The states and events stand in README.md. Everything runs on
 * the loop of its io thread.
 */
struct io {
	struct loop *loop;
	const struct services *services;
	route_finder find;
	struct conn *conns, *freed;
	/* Of those: who shakes hands, and who has and has shown no identity since. */
	struct conn_unauthenticated {
		struct conn *oldest, *newest;
	} handshakes, strangers;
	const struct config *config; /* held until the batch of events ends: conn_config */
	uint64_t
	    asked_ns; /* processor time in this batch of events for what strangers ask at a door; */
	uint64_t shaken_ns; /* that of all its handshakes */
	/* Strangers at a door who want to ask something, in order; one goes on in its turn. */
	struct conn_line {
		struct loop_post *first, *last;
		struct loop_post post; /* while there are some, the loop comes round */
		bool posted, in_turn;
	} line;
	char *scratch; /* CONN_SCRATCH bytes for body pieces */
	atomic_uint count;
	/* For reports. Only this thread adds to them. */
	struct io_counts {
		atomic_uint_least64_t connections, handshakes, handshakes_failed;
		atomic_uint_least64_t responses[SERVER_CLASSES];
		atomic_uint_least64_t received_bytes, sent_bytes;
	} counts;
	/* Of all threads: what addresses cost (peers.h), and what identities cost, by the first bytes of identity.owner. */
	struct tally *peers, *identities;
	bool stopping;
	/* Closes somebody who has shown no identity, of all threads'; false: not yet. */
	bool (*make_room)(struct io *io, bool handshake);
	/* Where a connection goes once its handshake showed a certificate; NULL: it stays. */
	struct io *(*inner)(struct io *io);
	/* Of a door: what those may use who have shown no identity; else NULL. */
	struct pace *pace;
};
#define CONN_SCRATCH (128u << 10)

enum conn_kind {
	CONN_OVER_TLS, /* peers_enter has counted its handshake, and the connection calls peers_leave */
	CONN_PROXIED, /* the same behind a PROXY head, which names the peer: only then is its handshake counted */
	CONN_LOCAL, /* a Unix socket, whose peers are administrators */
	CONN_PROBE, /* plain HTTP: anyone on this host, for the routes marked so */
};
/* Takes over fd (non-blocking). Closes it on failure. */
void conn_open(struct io *io, int fd, enum conn_kind kind, const char *peer);
/* The budget that applies before TLS costs anything. True: a handshake of this peer is counted, and the connection calls
 * peers_leave. When all of it is taken, who came first and is still not through makes room: otherwise a few silent peers could keep
 * everybody out. */
bool conn_admit(struct io *io, const char *peer);
/* Closes the connection that has been longest without showing an identity: in its handshake, or else anywhere. False if there
 * is none. */
bool conn_evict(struct io *io, bool handshake);
/* Timeouts of all connections. */
void conn_tick(struct io *io, uint64_t now_ms);
/* Asks parked exchanges again. */
void conn_wake_parked(struct io *io);
/* Stops taking requests: idle connections close, parked ones are answered, busy ones finish. */
void conn_stop(struct io *io);
/* At the end of a batch of events: whose turn it is in the line. */
void conn_serve_line(struct io *io);
/* Closes everything that is left, once no thread runs the loop and no worker holds an exchange. */
void conn_close_all(struct io *io);
/* The configuration as this batch of events sees it, until conn_sweep. */
const struct config *conn_config(struct io *io);
/* Releases the configuration and the connections closed during the last batch of events. */
void conn_sweep(struct io *io);

#endif
