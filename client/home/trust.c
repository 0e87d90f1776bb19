#include "trust.h"

#include <ctype.h>
#include <string.h>

#define END "-----END CERTIFICATE-----"
#define PEM_MAX 4096

static enum err
take_one(struct trust *t, const char *pem, size_t len, struct why *why)
{
	char one[PEM_MAX];
	struct x509_info info;

	if (t->count == TRUST_MAX || len + 2 > sizeof(one))
		return err_set(why, ERR_LIMIT, "too many or too long CA certificates");
	memcpy(one, pem, len);
	strcpy(one + len, "\n");
	enum err e = x509_from_pem(&t->ca[t->count], one, why);
	if (!e)
		e = x509_parse(&info, &t->ca[t->count], why);
	if (!e && !info.is_ca)
		e = err_set(why, ERR_INVALID, "a certificate among the CAs is none");
	if (!e)
		t->count++;
	return e;
}

enum err
trust_parse(struct trust *out, const char *pem, struct why *why)
{
	enum err e = ERR_OK;

	out->count = 0;
	do {
		const char *end = strstr(pem, END);
		if (!end)
			return err_set(why, ERR_INVALID, "no CA certificate in PEM form");
		end += strlen(END);
		e = take_one(out, pem, (size_t)(end - pem), why);
		for (pem = end; isspace((unsigned char)*pem);)
			pem++;
	} while (!e && *pem);
	return e;
}

enum err
trust_check(const struct trust *t, const struct x509_cert *cert)
{
	for (size_t i = 0; i < t->count; i++)
		if (x509_verify(cert, &t->ca[i]) == ERR_OK)
			return ERR_OK;
	return ERR_DENIED;
}
