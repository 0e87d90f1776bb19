#include <mbedtls/asn1.h>
#include <mbedtls/oid.h>
#include <mbedtls/x509_crt.h>
#include <string.h>

#include "mbed.h"

/* Reads one element with this tag from *p; returns its content and moves *p behind it, or NULL. */
static unsigned char *
element(unsigned char **p, const unsigned char *end, int tag, size_t *len)
{
	if (mbedtls_asn1_get_tag(p, end, len, tag) != 0)
		return NULL;
	unsigned char *content = *p;
	*p += *len;
	return content;
}

unsigned char *
x509_ext_find(const mbedtls_x509_crt *crt, const char *oid, size_t oid_len, size_t *len)
{
	const int sequence = MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE;
	unsigned char *p = crt->v3_ext.p;

	if (!p)
		return NULL;
	p = element(&p, p + crt->v3_ext.len, sequence, len);
	const unsigned char *end = p ? p + *len : NULL;
	while (p && p < end) {
		unsigned char *ext = element(&p, end, sequence, len);
		if (!ext)
			return NULL;
		unsigned char *id = element(&ext, p, MBEDTLS_ASN1_OID, len);
		if (!id || *len != oid_len || memcmp(id, oid, oid_len) != 0)
			continue;
		(void)element(&ext, p, MBEDTLS_ASN1_BOOLEAN, len);
		return element(&ext, p, MBEDTLS_ASN1_OCTET_STRING, len);
	}
	return NULL;
}

void
x509_ext_each_name(const mbedtls_x509_crt *crt,
    bool (*fn)(void *ctx, int tag, const uint8_t *content, size_t len), void *ctx)
{
	static const char oid[] = MBEDTLS_OID_SUBJECT_ALT_NAME;
	size_t len;
	unsigned char *value = x509_ext_find(crt, oid, sizeof(oid) - 1, &len);

	if (!value)
		return;
	unsigned char *p =
	    element(&value, value + len, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE, &len);
	const unsigned char *end = p ? p + len : NULL;
	while (p && p < end) {
		int tag = *p;
		unsigned char *content = element(&p, end, tag, &len);
		if (!content || !fn(ctx, tag, content, len))
			return;
	}
}

struct address {
	const uint8_t *bytes;
	size_t len;
	bool found;
};

static bool
is_address(void *ctx, int tag, const uint8_t *content, size_t len)
{
	struct address *a = ctx;

	a->found = tag == X509_EXT_ADDRESS && len == a->len && memcmp(content, a->bytes, len) == 0;
	return !a->found;
}

bool
x509_ext_has_address(const mbedtls_x509_crt *crt, const uint8_t *address, size_t address_len)
{
	struct address a = {address, address_len, false};

	x509_ext_each_name(crt, is_address, &a);
	return a.found;
}
