#ifndef TLS_H
#define TLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "x509.h"

/*
 * TLS sessions over a non-blocking socket, behind five results. TLS 1.2 and up, AEAD only, X25519 and P-256.
 * No certificate dates are checked by a server session: identity is the registry's business.
 *
 * A context is shared by all threads; a session has one owner at a time. Server contexts ask for a client
 * certificate but do not require one; a certificate that does not chain to the CA fails the handshake. A peer that sends records without
 * data (alerts, renegotiation, key updates) beyond a bound fails too.
 * Sessions resume (session ids and, where the back end has them, tickets), at most one hour.
 */
enum tls_result {
	TLS_OK, /* done; for read and write, *done bytes moved */
	TLS_FAILED, /* protocol or transport error: free the session */
	TLS_CLOSED, /* the peer closed cleanly */
	TLS_AGAIN_IN, /* call again when the socket is readable */
	TLS_AGAIN_OUT, /* call again when the socket is writable */
};

struct tls_context;
struct tls_session;

struct tls_config {
	bool server;
	const struct x509_cert *ca; /* trust anchor for the peer */
	const struct x509_cert *other_ca; /* a second trust anchor, or NULL */
	const struct x509_cert *cert; /* own certificate; NULL for a client without one */
	/* Sent behind `cert`: the certificate that an older CA issued for cert's CA; or NULL. */
	const struct x509_cert *chain;
	const struct key *key; /* the key of `cert`; copied as needed, must outlive the context */
	/* Client: the DNS name or IP address that must be in the server's certificate. */
	const char *peer_name;
	/* Server: how many sessions the cache holds. Client: not 0 to offer the latest session. Both: 0 for no resumption. */
	unsigned cache_entries;
};

/* Name and version of the back end in use, e.g. "mbedTLS 2.28.3". */
const char *tls_backend(void);

ERR_MUST_USE enum err tls_context_new(
    struct tls_context **out, const struct tls_config *config, struct why *why);
/* Free only when no session uses it. NULL is legal. */
void tls_context_free(struct tls_context *ctx);
/* Forgets every session that could be resumed (after a revocation). Any thread. */
void tls_context_forget(struct tls_context *ctx);

/* fd stays the caller's: it is neither made non-blocking nor closed here. */
ERR_MUST_USE enum err tls_session_new(struct tls_session **out, struct tls_context *ctx, int fd);
void tls_session_free(struct tls_session *s);

enum tls_result tls_handshake(struct tls_session *s);
/* Reads up to len (> 0) bytes. May hold decrypted bytes back: see tls_pending. */
enum tls_result tls_read(struct tls_session *s, void *data, size_t len, size_t *done);
/* Writes as much as the socket takes; *done < len is usual. The next write after TLS_AGAIN_*, or after a short
 * one, begins with the bytes not yet taken and offers no fewer of them (the buffer may move). */
enum tls_result tls_write(struct tls_session *s, const void *data, size_t len, size_t *done);
/* Decrypted bytes that epoll cannot see. */
bool tls_pending(const struct tls_session *s);
/* Sends close_notify, best effort, without waiting. */
void tls_shutdown(struct tls_session *s);

/* The peer's certificate after the handshake: ERR_NOTFOUND if it gave none. */
ERR_MUST_USE enum err tls_peer_cert(const struct tls_session *s, struct x509_cert *out);
bool tls_resumed(const struct tls_session *s);
/* Did the peer send any byte? A peer that connects and closes without one only checks that the port is open. */
bool tls_heard(const struct tls_session *s);
/* Server: the common name of the certificate that the peer showed, accepted or not; "" if the peer showed none or the name is longer than
 * X509_COMMON_NAME. Until the handshake has succeeded the name proves nothing: anybody can make, or show, such a certificate.
 * Raw text from outside. */
const char *tls_claimed(const struct tls_session *s);
/* Did the handshake fail because no CA that is trusted here has made the peer's certificate? */
bool tls_other_ca(const struct tls_session *s);
/* Why the session failed, one line, never NULL. */
const char *tls_why(const struct tls_session *s);

#endif
