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
	const struct route_table *routes;
	struct conn *conns, *freed;
	/* Of conns: peers in their TLS handshake, and unauthenticated peers behind it. */
	struct conn_unauthenticated {
		struct conn *oldest, *newest;
	} handshakes, strangers;
	struct conn *readers; /* of conns: parked with route.reads */
	const struct config *config; /* held until the batch of events ends: conn_config */
	/* On a handshake thread, processor time in this batch of events: for requests of unauthenticated peers, for handshakes. */
	uint64_t asked_ns;
	uint64_t shaken_ns;
	/* On a handshake thread: the queue of unauthenticated connections whose next request waits for its turn. */
	struct conn_line {
		struct loop_post *first, *last;
		struct loop_post post; /* keeps the loop going while the queue is not empty */
		bool posted, in_turn;
	} line;
	char *scratch; /* CONN_SCRATCH bytes for body pieces */
	atomic_uint count;
	/* For reports. Only this I/O thread adds to the counts. */
	struct io_counts {
		atomic_uint_least64_t connections, handshakes[SERVER_HANDSHAKES];
		atomic_uint_least64_t responses[SERVER_ROUTES_MAX + 1][SERVER_CLASSES];
		atomic_uint_least64_t refusals[PROBLEM_UNKNOWN];
		atomic_uint_least64_t received_bytes, sent_bytes;
	} counts;
	/* Shared by all threads: what remote addresses cost (peers.h), and what identities cost, by the first bytes of identity.owner. */
	struct tally *peers, *identities;
	bool stopping;
	/* Closes an unauthenticated connection of this thread; false: there is none, and the other threads were asked to close one. */
	bool (*make_room)(struct io *io, bool handshake);
	/* On a handshake thread: the I/O thread for a connection whose peer has shown a certificate; else NULL. */
	struct io *(*inner)(struct io *io);
	/* On a handshake thread: the processor time that unauthenticated peers may use; else NULL. */
	struct pace *pace;
};
#define CONN_SCRATCH (128u << 10)

enum conn_kind {
	CONN_OVER_TLS, /* peers_enter has counted its handshake, and the connection calls peers_leave */
	/* TLS behind a PROXY head, which names the peer: the handshake is counted once the head was read. */
	CONN_PROXIED,
	CONN_LOCAL, /* a Unix socket, whose peers are administrators */
	CONN_PROBE, /* plain HTTP: anyone on this host, for routes with `probe` set */
};
/* Makes a connection on fd (non-blocking), which it takes over and closes on failure. */
void conn_open(struct io *io, int fd, enum conn_kind kind, const char *peer);
/* The budget of handshakes, checked before TLS costs anything. True: a handshake of this peer is counted, and the connection calls
 * peers_leave at its end. When the budget is used up, the oldest unfinished handshake is closed: otherwise a few silent peers could
 * keep everybody out. */
bool conn_admit(struct io *io, const char *peer);
/* Closes the oldest unauthenticated connection: with `handshake` one in its handshake, else preferably one behind it. False if there is
 * none. */
bool conn_evict(struct io *io, bool handshake);
/* Checks the timeouts of all connections. */
void conn_tick(struct io *io, uint64_t now_ms);
/* Calls the handlers of parked exchanges again, but not those of readers (route.reads). */
void conn_wake_parked(struct io *io);
/* Adds what was counted to a report (conn_counts.c). */
void conn_add_counts(const struct io_counts *from, struct server_report *to);
/* A job has changed: the handlers of parked readers are called one after another within CONN_READERS_MS, so that they do not ask for all
 * jobs at one moment. */
#define CONN_READERS_MS 250
void conn_tell_readers(struct io *io, uint64_t now_ms);
/* Calls those whose time has come, and has the loop tick when the next one's has. */
void conn_turn_readers(struct io *io, uint64_t now_ms);
/* An identity has changed: parked readers that may read no more are refused. */
void conn_check_readers(struct io *io);
/* Stops taking requests: idle connections close, parked ones are answered, busy ones finish. */
void conn_stop(struct io *io);
/* At the end of a batch of events: serves the queue of unauthenticated connections as far as their processor time goes. */
void conn_serve_line(struct io *io);
/* Closes everything that is left, once no thread runs the loop and no worker holds an exchange. */
void conn_close_all(struct io *io);
/* The configuration as this batch of events sees it, until conn_sweep. */
const struct config *conn_config(struct io *io);
/* Releases the configuration and the connections closed during the last batch of events. */
void conn_sweep(struct io *io);

#endif
