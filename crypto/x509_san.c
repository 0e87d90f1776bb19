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

bool
x509_san_has_address(const mbedtls_x509_crt *crt, const uint8_t *address, size_t address_len)
{
	const int sequence = MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE;
	unsigned char *p = crt->v3_ext.p, *end = p + crt->v3_ext.len;
	size_t len;

	p = p ? element(&p, end, sequence, &len) : NULL;
	if (!p)
		return false;
	end = p + len;
	while (p < end) {
		size_t oid_len, value_len;
		unsigned char *ext = element(&p, end, sequence, &len);
		if (!ext)
			return false;
		unsigned char *ext_end = ext + len;
		unsigned char *oid = element(&ext, ext_end, MBEDTLS_ASN1_OID, &oid_len);
		if (!oid || oid_len != sizeof(MBEDTLS_OID_SUBJECT_ALT_NAME) - 1 ||
		    memcmp(oid, MBEDTLS_OID_SUBJECT_ALT_NAME, oid_len) != 0)
			continue;
		(void)element(&ext, ext_end, MBEDTLS_ASN1_BOOLEAN, &len);
		unsigned char *value =
		    element(&ext, ext_end, MBEDTLS_ASN1_OCTET_STRING, &value_len);
		unsigned char *value_end = value ? value + value_len : NULL;
		unsigned char *names = value ? element(&value, value_end, sequence, &len) : NULL;
		return names && names_address(names, names + len, address, address_len);
	}
	return false;
}
