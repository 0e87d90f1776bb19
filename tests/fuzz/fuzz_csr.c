/* Certificate requests, as POST /v1/join and /v1/rotate receive them. */

#include "fuzz.h"
#include "x509.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t spki[KEY_SPKI_LEN];
	struct x509_info info;
	struct x509_cert cert;
	struct why why;

	if (x509_csr_check(data, len, spki, &why) == ERR_OK &&
	    key_check_spki(spki, sizeof(spki)) != ERR_OK)
		abort();
	/* The other parser of outside DER: a certificate read back from a file. */
	if (len <= sizeof(cert.der)) {
		for (size_t i = 0; i < len; i++)
			cert.der[i] = data[i];
		cert.len = len;
		if (x509_parse(&info, &cert, &why) == ERR_OK &&
		    key_check_spki(info.spki, sizeof(info.spki)) != ERR_OK)
			abort();
	}
	return 0;
}
