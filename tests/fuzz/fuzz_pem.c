/* PEM text: certificates as a coordinator's answer brings them, and the private key of a file. */
#include <sys/stat.h>

#include "fuzz.h"
#include "scratch.h"
#include "trust.h"
#include "x509.h"

static void
certificate(const char *text)
{
	struct x509_cert cert, again;
	struct x509_info info;
	struct why why;
	char pem[4 * X509_DER_MAX];
	size_t room = sizeof(pem);

	if (x509_from_pem(&cert, text, &why))
		return;
	if (cert.len > sizeof(cert.der) || x509_to_pem(pem, &room, &cert) ||
	    x509_from_pem(&again, pem, &why) || again.len != cert.len ||
	    memcmp(again.der, cert.der, cert.len) != 0)
		abort();
	if (x509_parse(&info, &cert, &why) == ERR_OK &&
	    (key_check_spki(info.spki, sizeof(info.spki)) ||
		strlen(info.common_name) >= sizeof(info.common_name)))
		abort();
	(void)!x509_verify(&cert, &cert);
}

/* A list of CAs, as an answer to a renewal brings it: what is believed are CAs, and no more than there is room for. */
static void
list(const char *text)
{
	struct trust trust;
	struct x509_info info;
	struct why why;

	if (trust_parse(&trust, text, &why))
		return;
	if (trust.count < 1 || trust.count > TRUST_MAX)
		abort();
	for (size_t i = 0; i < trust.count; i++) {
		if (x509_parse(&info, &trust.ca[i], &why) || !info.is_ca)
			abort();
		(void)!trust_check(&trust, &trust.ca[i]);
	}
}

static void
key(const uint8_t *data, size_t len)
{
	char path[PATH_MAX];
	struct key *k = NULL;
	struct why why;

	scratch_put("key.pem", data, len);
	snprintf(path, sizeof(path), "%s/key.pem", scratch_get());
	if (chmod(path, 0600) == 0 && key_load(&k, path, &why) == ERR_OK &&
	    key_check_spki(key_spki(k), KEY_SPKI_LEN))
		abort();
	key_free(k);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = fuzz_string(data, len);

	certificate(text);
	list(text);
	free(text);
	if (len < 4096)
		key(data, len);
	return 0;
}
