#ifndef TRUST_H
#define TRUST_H
#include "x509.h"

/* The CAs that a device trusts: one, or the old and the new CA while a coordinator's CA is being replaced. */
#define TRUST_MAX 4

struct trust {
	struct x509_cert ca[TRUST_MAX];
	size_t count;
};

/* PEM certificates, one after the other; each must be a CA. ERR_INVALID, ERR_LIMIT past TRUST_MAX. */
ERR_MUST_USE enum err trust_parse(struct trust *out, const char *pem, struct why *why);
/* Is the certificate signed by one of the CAs? ERR_DENIED if not. Dates are not checked. */
ERR_MUST_USE enum err trust_check(const struct trust *t, const struct x509_cert *cert);

#endif
