#ifndef OSSL_H
#define OSSL_H
/*
 * Internal to crypto/: the OpenSSL headers, and one spelling for what OpenSSL 3.4 renamed. OpenSSL names a type ERR_STATE,
 * which is a constant in base/core/err.h; crypto/ does not use OpenSSL's type.
 */
#define ERR_STATE OSSL_ERR_STATE
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#undef ERR_STATE

#if OPENSSL_VERSION_NUMBER >= 0x30400000L
#define SSL_CTX_flush_sessions SSL_CTX_flush_sessions_ex
#define SSL_SESSION_set_time(session, t) SSL_SESSION_set_time_ex(session, (time_t)(t))
#else
#define SSL_SESSION_set_time(session, t) (SSL_SESSION_set_time)(session, (long)(t))
#endif

/* Does this verdict on a certificate mean that no CA that is trusted has made it? */
static inline int
ossl_other_ca(long verdict)
{
	return verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
	    verdict == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE ||
	    verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
	    verdict == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

#endif
