#ifndef RESUME_H
#define RESUME_H
#include <mbedtls/ssl.h>

#include "sessions.h"

/*
 * Internal to crypto/: puts mbedTLS's sessions into the cache and takes them out. The cache must outlive every configuration and context
 * that was given it.
 */

/* A server of this configuration keeps its sessions in the cache. */
void tls_resume_serve(mbedtls_ssl_config *conf, struct sessions *sessions);
/* Offers the cached session to the server. A client's context has one peer and one identity, so its cache has the latest session alone. */
void tls_resume_offer(mbedtls_ssl_context *ssl, struct sessions *sessions);
/* Stores the session of a full handshake as the latest one. */
void tls_resume_keep(const mbedtls_ssl_context *ssl, struct sessions *sessions);

#endif
