#ifndef RESUME_H
#define RESUME_H
#include <mbedtls/ssl.h>

#include "sessions.h"

/*
 * Internal to crypto/: sessions of mbedTLS into the cache and out of it. The cache outlives what was given it here.
 */

/* A server of this configuration keeps its sessions there. */
void tls_resume_serve(mbedtls_ssl_config *conf, struct sessions *sessions);
/* A client's context speaks to one peer under one identity, so its latest session is the only one, and the one to offer. */
void tls_resume_offer(mbedtls_ssl_context *ssl, struct sessions *sessions);
/* The session of a full handshake becomes the latest. */
void tls_resume_keep(const mbedtls_ssl_context *ssl, struct sessions *sessions);

#endif
