#include "credentials.h"

#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "hex.h"

static enum err
read_pem(char **out, const char *home, const char *name, struct why *why)
{
	char path[PATH_MAX];
	size_t len;
	enum err e = identity_path(path, home, name, why);

	if (!e)
		e = file_read(path, IDENTITY_PEM_MAX, out, &len, why);
	if (e == ERR_NOTFOUND)
		return err_set(why, e, "%s is missing", path);
	return e;
}

static enum err
load_key(struct credentials *c, const char *home, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, "key.pem", why);

	if (!e)
		e = key_load(&c->key, path, why);
	if (e)
		return e;
	/* After a change of key the id stays that of the first one: device.json decides. */
	if (!hex_decode(c->device, sizeof(c->device), c->identity.device, 64))
		return err_set(why, ERR_CORRUPT, "%s/device.json: bad device id", home);
	return ERR_OK;
}

static enum err
load_certificate(struct credentials *c, const char *home, struct why *why)
{
	struct x509_cert cert;
	enum err e = read_pem(&c->cert_pem, home, "cert.pem", why);

	if (!e)
		e = read_pem(&c->ca_pem, home, "ca.pem", why);
	if (e)
		return e;
	if (x509_from_pem(&cert, c->cert_pem, NULL) || x509_parse(&c->cert, &cert, NULL))
		return err_set(why, ERR_CORRUPT, "%s/cert.pem is damaged", home);
	if (trust_parse(&c->trust, c->ca_pem, NULL))
		return err_set(why, ERR_CORRUPT, "%s/ca.pem is damaged", home);
	/* No coordinator would let this device in; asking it would go on for ever. */
	if (memcmp(c->cert.spki, key_spki(c->key), KEY_SPKI_LEN) != 0)
		return err_set(why, ERR_CORRUPT,
		    "%s/key.pem does not belong to cert.pem: one of them is from another device or "
		    "time",
		    home);
	return ERR_OK;
}

/* Homes that joined an older coordinator have no signer.pem. */
static enum err
load_signer(struct credentials *c, const char *home, struct why *why)
{
	struct x509_cert cert;
	struct x509_info info;
	char *text = NULL;
	enum err e = read_pem(&text, home, "signer.pem", why);

	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	if (x509_from_pem(&cert, text, NULL) || trust_check(&c->trust, &cert) ||
	    x509_parse(&info, &cert, NULL))
		e = err_set(why, ERR_CORRUPT, "%s/signer.pem is not certified by ca.pem", home);
	free(text);
	if (e)
		return e;
	memcpy(c->signer, info.spki, KEY_SPKI_LEN);
	c->has_signer = true;
	return ERR_OK;
}

enum err
credentials_load(struct credentials *out, const char *home, struct why *why)
{
	memset(out, 0, sizeof(*out));
	enum err e = identity_load(&out->identity, home, why);

	if (!e)
		e = load_key(out, home, why);
	if (!e)
		e = load_certificate(out, home, why);
	if (!e)
		e = load_signer(out, home, why);
	if (e)
		credentials_deinit(out);
	return e;
}

void
credentials_deinit(struct credentials *c)
{
	key_free(c->key);
	free(c->cert_pem);
	free(c->ca_pem);
	memset(c, 0, sizeof(*c));
}
