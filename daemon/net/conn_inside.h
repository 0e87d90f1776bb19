#ifndef CONN_INSIDE_H
#define CONN_INSIDE_H
#include "conn.h"
#include "tls.h"
#include "x509.h"

/* Inside of a connection: shared by conn.c (life and events), conn_read.c (handshake, heads, bodies), conn_request.c (what a
 * request becomes), conn_write.c (responses), conn_unauthenticated.c (what those cost that come in crowds), conn_proxy.c (heads of
 * balancers) and conn_claim.c (whom a line of the log is about). */

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
	bool gone; /* closed while the exchange is elsewhere */
	struct buf in, out;
	size_t head_seen; /* of `in`: holds no end of a head */
	bool
	    claimed; /* what a key asked for that a restored state does not know was decided for this request */
	size_t out_at;
	uint64_t file_at;
	bool chunked; /* the answer is a list that goes on */
	uint64_t body_len, body_left;
	uint64_t deadline_ms;
	uint64_t slow_since_ms, slow_bytes; /* least-rate window of an upload */
	uint64_t drained;
	bool has_cert;
	struct x509_info cert;
	struct conn_unauthenticated *unauthenticated; /* the one it is in, or NULL */
	struct conn *older, *newer; /* in it */
	bool counted; /* in io->identities, as counted_as */
	uint8_t counted_as[TALLY_KEY];
	uint64_t held_bytes; /* of its answer, by the same */
	struct pace_account *door; /* of the thread that shook hands, or NULL */
	uint64_t door_ns; /* processor time of the handshake, until it is refunded */
	unsigned turns; /* requests begun since the last event */
	bool again_posted;
	struct loop_post again;
	struct exchange x;
};

/* --- conn.c */
/* Into and out of its io's list. */
void conn_list(struct conn *c);
void conn_unlist(struct conn *c);
/* Moves to a state and sets its timeout and, where nothing is read, its interest. */
void conn_change_state(struct conn *c, enum conn_state to);
/* The connection no longer counts as one in its handshake. Idempotent. */
void conn_end_handshake(struct conn *c);
/* Closes the socket; memory goes in conn_sweep, or after the exchange comes back. Idempotent. */
void conn_close(struct conn *c);
/* Steps until nothing more can be done now, at the cost of the strangers of a door if it is one. */
void conn_drive(struct conn *c);
/* Ends the exchange at hand: drops its handler's state, empties request and response. */
void conn_end_exchange(struct conn *c);
/* Sets what to wait for after an unfinished transfer; returns false: nothing more to do now. */
void conn_want(struct conn *c, uint32_t events);
bool conn_await(struct conn *c, enum tls_result r);
enum tls_result conn_read_some(struct conn *c, void *p, size_t len, size_t *done);
enum tls_result conn_write_some(struct conn *c, const void *p, size_t len, size_t *done);
/* Adds to one of io->counts. */
void conn_count(atomic_uint_least64_t *at, uint64_t n);
/* Monotonic time `seconds` from now. */
uint64_t conn_deadline(uint64_t seconds);

/* --- conn_proxy.c: one step; true if another may follow at once */
bool conn_advance_proxy(struct conn *c);

/* --- conn_read.c: one step each; true if another may follow at once */
bool conn_advance_handshake(struct conn *c);
bool conn_advance_head(struct conn *c);
bool conn_advance_body(struct conn *c);

/* --- conn_claim.c */
/* Whom the certificate names that a peer showed: for the log, never to decide anything, as it may be refused, or another's. The text is
 * from outside. */
struct conn_claim {
	char text
	    [X509_COMMON_NAME]; /* its common name; of a device's id the digits that the log has of ids; "": of none */
	char name[64]; /* which the registry has for that id, or "" */
};
void conn_claim(const struct conn *c, struct conn_claim *out);

/* --- conn_request.c */
/* Sets who asks, from the certificate and the registry. */
void conn_identify(struct conn *c);
/* Is it somebody the registry knows, or an administrator on this host? */
bool conn_is_known(const struct conn *c);
/* Parses the header block at the start of c->in, finds route and identity, and goes on to the body or a refusal. */
bool conn_start_request(struct conn *c, size_t head_len);
void conn_body_complete(struct conn *c);
/* Looks the identity up again, for requests that last; false: it may not go on, and the refusal is on its way. */
bool conn_still_may(struct conn *c);
/* Runs a polling handler; answers or stays parked. */
void conn_poll_again(struct conn *c);
/* The pieces of a list are out: has the next made, or closes. Returns false. */
bool conn_list_on(struct conn *c);
/* The exchange comes back from a worker or the store. */
void conn_on_done(struct exchange *x);

/* --- conn_unauthenticated.c */
/* Makes it the newest of a crowd, leaving the one it was in; NULL: of none. */
void conn_join_unauthenticated(struct conn *c, struct conn_unauthenticated *unauthenticated);
/* The request at hand counts against its identity, and the connection too. Returns 0, or after how many seconds it may come
 * again: then it has neither been counted nor is it to be answered. */
uint32_t conn_charge(struct conn *c);
/* A request was answered: its body, and a refusal, count against the identity, if there is one. */
void conn_count_body(struct conn *c);
/* An answer to a reading request, or a piece of one, of so many bytes was made: likewise, and what was looked at for it. */
void conn_count_answer(struct conn *c, size_t bytes);
/* So many bytes of an answer are in memory until they are out. False, and nothing is counted, if those of the identity's other
 * connections and these would be more than output_bytes. */
bool conn_hold(struct conn *c, size_t bytes);
/* The connection counts no longer. Idempotent. */
void conn_leave_tally(struct conn *c);
/* Goes on on another thread, waiting for a head. The caller does not touch it afterwards. */
void conn_move(struct conn *c, struct io *to);
/* A step of its handshake now? If not, epoll tells again. */
bool conn_may_shake(const struct conn *c);
/* May its next request be read? A stranger's at a door only in its turn. */
bool conn_may_ask(const struct conn *c);
/* Nobody stands in line any more, or ever will. */
void conn_forget_line(struct io *io);
/* Goes on after the others that are ready, or, as a stranger at a door, that stand in line; returns false. */
bool conn_yield(struct conn *c);

/* --- conn_write.c */
/* Starts sending the exchange's response. */
void conn_respond(struct conn *c);
/* The next piece of its list. */
void conn_respond_on(struct conn *c);
void conn_refuse(struct conn *c, enum problem_type type, const char *detail);
/* Writes pending output: TLS_OK when all of it is out. */
enum tls_result conn_flush(struct conn *c);
bool conn_advance_write(struct conn *c);
bool conn_advance_drain(struct conn *c);

#endif
