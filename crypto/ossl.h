#ifndef OSSL_H
#define OSSL_H
/*
 * Internal to crypto/: the OpenSSL headers. They name a type ERR_STATE, which base/err.h needs for a constant;
 * nothing here uses theirs.
 */
#define ERR_STATE OSSL_ERR_STATE
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#undef ERR_STATE

#endif
