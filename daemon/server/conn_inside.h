#ifndef CONN_INSIDE_H
#define CONN_INSIDE_H
#include "conn.h"
#include "tls.h"
#include "x509.h"

/* Inside of a connection: shared by conn.c (life and events), conn_read.c (handshake, heads, bodies), conn_request.c (what a
 * request becomes), conn_write.c (responses), conn_unauthenticated.c (limits on unauthenticated peers and on identities), conn_readers.c
 * (who waits for a change), conn_proxy.c (heads of load balancers) and conn_claim.c (whom a line of the log is about). */

enum conn_state {
	CONN_PROXY, /* waiting for a balancer's head */
	CONN_HANDSHAKE,
	CONN_HEAD, /* waiting for or reading a header block */
	CONN_BODY, /* collecting a whole body */
	CONN_BEGIN, /* stream_ops.begin is on a worker */
	CONN_STREAM, /* body pieces go to stream_ops.data */
	CONN_BUSY, /* a worker or the store has the exchange */
	CONN_PARKED, /* long poll */
	CONN_WRITE,
	CONN_HELD, /* answered 429: nothing is read for a second */
	CONN_DRAIN, /* answered and closing: waiting for the peer to stop */
	CONN_CLOSED,
};

struct conn {
	struct loop_source source;
	struct io *io;
	struct conn *prev, *next;
	struct tls_session *tls;
	const struct services_tls *shown; /* held as long as tls */
	enum conn_kind kind;
	bool handshaking;
	enum conn_state state;
	uint32_t interest;
	bool gone; /* closed while a worker or the store holds the exchange */
	struct buf in, out;
	size_t head_seen; /* bytes of `in` that were searched for the end of a head */
	bool claimed; /* this request has been through ROUTE_CLAIM */
	size_t out_at;
	uint64_t file_at;
	bool chunked; /* the answer is a list that goes on */
	struct buf *kept; /* what came of that list, for services.answers */
	uint64_t began_ms; /* when the request's head was there; 0: it never was */
	uint64_t answered; /* bytes of the answer's body, so far */
	bool untold; /* the answer has begun, and is not logged yet */
	uint64_t body_len, body_left;
	uint64_t deadline_ms;
	uint64_t slow_since_ms, slow_bytes; /* least-rate window of an upload */
	uint64_t drained;
	bool has_cert;
	struct x509_info cert;
	/* The list that the connection is in, or NULL. */
	struct conn_unauthenticated *unauthenticated;
	struct conn *older, *newer; /* neighbours in that list */
	struct conn *next_reader, **reader_at; /* its place in io->readers; at NULL: it has none */
	uint64_t turn_ms; /* there: when its handler is called; 0: nothing has changed */
	bool counted; /* in io->identities, as counted_as */
	uint8_t counted_as[TALLY_KEY];
	uint64_t held_bytes; /* bytes of the answer that io->identities counts for counted_as */
	struct pace_account *door; /* account of the thread that did the handshake, or NULL */
	uint64_t door_ns; /* processor time of the handshake, until it is refunded or lost */
	unsigned turns; /* requests begun since the last event */
	bool again_posted;
	struct loop_post again;
	struct exchange x;
};

/* --- conn.c */
/* Adds a connection to the list of its io, or removes it. */
void conn_list(struct conn *c);
void conn_unlist(struct conn *c);
/* Moves to a state and sets the state's deadline and, where nothing is read in the state, the epoll interest. */
void conn_change_state(struct conn *c, enum conn_state to);
/* The connection no longer counts as one in its handshake. Idempotent. */
void conn_end_handshake(struct conn *c);
/* Closes the socket; memory goes in conn_sweep, or after the exchange comes back. Idempotent. */
void conn_close(struct conn *c);
/* Steps until nothing more can be done now. For an unauthenticated peer on a handshake thread the time is charged to io->pace. */
void conn_drive(struct conn *c);
/* Ends the exchange at hand: drops its handler's state, empties request and response. */
void conn_end_exchange(struct conn *c);
/* Sets the epoll events to wait for: these; those that an unfinished transfer with result r needs (conn_await, which returns false). */
void conn_want(struct conn *c, uint32_t events);
bool conn_await(struct conn *c, enum tls_result r);
enum tls_result conn_read_some(struct conn *c, void *p, size_t len, size_t *done);
enum tls_result conn_write_some(struct conn *c, const void *p, size_t len, size_t *done);
/* Adds n to a counter of io->counts. */
void conn_count(atomic_uint_least64_t *at, uint64_t n);
/* The time by clock_ms that is `seconds` from now. */
uint64_t conn_deadline(uint64_t seconds);

/* --- conn_counts.c, for reports */
void conn_count_handshake(struct conn *c, enum server_handshake how);
/* Once for each answer. */
void conn_count_response(struct conn *c);

/* --- conn_proxy.c: one step; true if another may follow at once */
bool conn_advance_proxy(struct conn *c);

/* --- conn_read.c: one step each; true if another may follow at once */
bool conn_advance_handshake(struct conn *c);
bool conn_advance_head(struct conn *c);
bool conn_advance_body(struct conn *c);

/* --- conn_claim.c */
/* Whom the certificate names that a peer showed: for the log, never to decide anything, as the certificate may be refused, or stolen. The
 * text is from outside. */
struct conn_claim {
	/* The certificate's common name; of a device's id only the first digits, as in all of the log; "" without a certificate. */
	char text[X509_COMMON_NAME];
	char name[64]; /* the name that the registry has for that id, or "" */
};
void conn_claim(const struct conn *c, struct conn_claim *out);

/* --- conn_request.c */
/* Sets c->x.who: who asks, by the kind of connection, the certificate or the token, and the registry. */
void conn_identify(struct conn *c);
/* Is the peer somebody the registry knows, or an administrator on this host? */
bool conn_is_known(const struct conn *c);
/* Parses the header block at the start of c->in, finds route and identity, and goes on to the body or a refusal. */
bool conn_start_request(struct conn *c, size_t head_len);
void conn_body_complete(struct conn *c);
/* For requests that last: looks the identity up again. False: the identity may no longer do this, and the refusal is on its way. */
bool conn_still_may(struct conn *c);
/* Runs a polling handler; then the connection answers, stays parked or is busy. */
void conn_poll_again(struct conn *c);
/* A piece of a list was sent: has a worker make the next one, or closes the connection if its identity may not read on. Returns false. */
bool conn_list_on(struct conn *c);
/* The exchange comes back from a worker or the store. */
void conn_on_done(struct exchange *x);

/* --- conn_unauthenticated.c */
/* Makes c the newest of a list of unauthenticated connections, and takes it out of the list it was in; NULL: only takes it out. */
void conn_join_unauthenticated(struct conn *c, struct conn_unauthenticated *unauthenticated);
/* Counts the request at hand, and the connection, against the identity. Returns 0, or the seconds after which the request may come again:
 * then it has not been counted, and is to be refused with 429. */
uint32_t conn_charge(struct conn *c);
/* After a request was answered: charges the identity, if there is one, for the request's body, and for a refusal. */
void conn_count_body(struct conn *c);
/* After an answer, or a piece of a list, of so many bytes was made: charges the identity for printed bytes or rows looked at, whichever
 * is more. */
void conn_count_answer(struct conn *c, size_t bytes);
/* Counts bytes of an answer that are in memory until they are sent. False, and nothing is counted, if they and those of the identity's
 * other connections would be more than output_bytes. */
bool conn_hold(struct conn *c, size_t bytes);
/* The connection counts no longer. Idempotent. */
void conn_leave_tally(struct conn *c);
/* Moves the connection to another thread, where it waits for a head. The caller does not touch c afterwards. */
void conn_move(struct conn *c, struct io *to);
/* May the next step of the handshake be done now? If not, epoll reports the connection again. */
bool conn_may_shake(const struct conn *c);
/* May the connection's next request be read now? That of an unauthenticated peer on a handshake thread only in its turn. */
bool conn_may_ask(const struct conn *c);
/* Empties the queue of unauthenticated connections, at the end. */
void conn_forget_line(struct io *io);
/* Has the connection go on after the others that are ready or, for an unauthenticated peer on a handshake thread, at the end of the
 * queue. Returns false. */
bool conn_yield(struct conn *c);

/* --- conn_readers.c: a connection's place in io->readers. Idempotent. */
void conn_enter_readers(struct conn *c);
void conn_leave_readers(struct conn *c);

/* --- conn_write.c */
/* Starts sending the exchange's response. */
void conn_respond(struct conn *c);
/* Starts sending the next piece of the response's list. */
void conn_respond_on(struct conn *c);
void conn_refuse(struct conn *c, enum problem_type type, const char *detail);
/* Logs the answer, unless that was done. */
void conn_tell(struct conn *c);
/* Puts a 100 Continue into the output if the request waits for one. False: no memory, and the connection is closed. */
bool conn_continue(struct conn *c);
/* Writes pending output: TLS_OK when all of it is out. */
enum tls_result conn_flush(struct conn *c);
bool conn_advance_write(struct conn *c);
bool conn_advance_drain(struct conn *c);

#endif
