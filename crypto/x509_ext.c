#include <mbedtls/asn1.h>
#include <mbedtls/oid.h>
#include <mbedtls/x509_crt.h>
#include <string.h>

#include "mbed.h"

#define NAME_IP (MBEDTLS_ASN1_CONTEXT_SPECIFIC | 7) /* iPAddress among GeneralNames */

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

/* Is the address among GeneralNames? */
static bool
names_address(
    unsigned char *p, const unsigned char *end, const uint8_t *address, size_t address_len)
{
	size_t len;

	while (p < end) {
		int tag = *p;
		unsigned char *content = element(&p, end, tag, &len);
		if (!content)
			return false;
		if (tag == NAME_IP && len == address_len && memcmp(content, address, len) == 0)
			return true;
	}
	return false;
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

bool
x509_ext_has_address(const mbedtls_x509_crt *crt, const uint8_t *address, size_t address_len)
{
	static const char oid[] = MBEDTLS_OID_SUBJECT_ALT_NAME;
	size_t len;
	unsigned char *value = x509_ext_find(crt, oid, sizeof(oid) - 1, &len);

	if (!value)
		return false;
	unsigned char *names =
	    element(&value, value + len, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE, &len);
	return names && names_address(names, names + len, address, address_len);
}
