#include "key.h"

#include <fcntl.h>
#include <mbedtls/ecp.h>
#include <mbedtls/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "mbed.h"
#include "rng.h"

/* SubjectPublicKeyInfo {id-ecPublicKey, prime256v1} up to and with the mark of an uncompressed point. */
static const uint8_t spki_prefix[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    0x04};

bool
key_has_prefix(const uint8_t spki[KEY_SPKI_LEN])
{
	return memcmp(spki, spki_prefix, sizeof(spki_prefix)) == 0;
}

bool
key_is_p256(const mbedtls_pk_context *pk)
{
	return mbedtls_pk_get_type(pk) == MBEDTLS_PK_ECKEY &&
	    mbedtls_pk_ec(*pk)->MBEDTLS_PRIVATE(grp).id == MBEDTLS_ECP_DP_SECP256R1;
}

enum err
key_spki_of(const mbedtls_pk_context *pk, uint8_t spki[KEY_SPKI_LEN])
{
	uint8_t der[KEY_SPKI_LEN + 32];

	if (!key_is_p256(pk))
		return ERR_UNSUPPORTED;
	/* mbedTLS takes the key without const but only reads it, and writes at the end of the buffer. */
	int n = mbedtls_pk_write_pubkey_der((mbedtls_pk_context *)(uintptr_t)pk, der, sizeof(der));
	if (n != KEY_SPKI_LEN)
		return ERR_UNSUPPORTED;
	memcpy(spki, der + sizeof(der) - KEY_SPKI_LEN, KEY_SPKI_LEN);
	return ERR_OK;
}

enum err
key_der(const struct key *key, uint8_t out[256], size_t *len)
{
	int n = mbedtls_pk_write_key_der((mbedtls_pk_context *)(uintptr_t)&key->pk, out, 256);

	if (n <= 0)
		return ERR_NOMEM;
	*len = (size_t)n;
	memmove(out, out + 256 - *len, *len);
	return ERR_OK;
}

static struct key *
new_key(void)
{
	struct key *key = calloc(1, sizeof(*key));

	if (key)
		mbedtls_pk_init(&key->pk);
	return key;
}

/* Derives what hangs on the private key once pk holds it. */
static enum err
complete(struct key *key)
{
	enum err e = key_spki_of(&key->pk, key->spki);

	return e ? e : sign_attach(key);
}

enum err
key_generate(struct key **out, struct why *why)
{
	struct key *key = new_key();
	enum err e = ERR_NOMEM;

	if (key && mbedtls_pk_setup(&key->pk, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)) == 0 &&
	    mbedtls_ecp_gen_key(
		MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(key->pk), rng_mbedtls, NULL) == 0)
		e = complete(key);
	if (e) {
		key_free(key);
		return err_set(why, e, "cannot generate a key: %s", err_name(e));
	}
	*out = key;
	return ERR_OK;
}

enum err
key_copy(struct key **out, const struct key *key)
{
	uint8_t der[256];
	size_t len = 0;
	struct key *copy = new_key();
	enum err e = copy ? key_der(key, der, &len) : ERR_NOMEM;

	if (!e && mbed_pk_parse_key(&copy->pk, der, len) != 0)
		e = ERR_NOMEM;
	if (!e)
		e = complete(copy);
	hash_wipe(der, sizeof(der));
	if (e)
		key_free(copy);
	else
		*out = copy;
	return e;
}

/* Reads the PEM text, checking the mode of the very file that is read. */
static enum err
read_private(const char *path, char text[KEY_PEM_MAX], struct why *why)
{
	enum err e = ERR_OK;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_errno(why, "open key %s", path);
	if (fstat(fd, &st) != 0)
		e = err_errno(why, "stat key %s", path);
	else if (!S_ISREG(st.st_mode))
		e = err_set(why, ERR_INVALID, "key %s is not a regular file", path);
	else if ((st.st_mode & 077) != 0)
		e = err_set(why, ERR_DENIED,
		    "key %s may be read by others than its owner (mode %03o): chmod 600 it", path,
		    (unsigned)(st.st_mode & 0777));
	else if (st.st_size >= KEY_PEM_MAX)
		e = err_set(
		    why, ERR_LIMIT, "key %s is larger than %d bytes", path, KEY_PEM_MAX - 1);
	else if ((e = file_pread(fd, text, (size_t)st.st_size, 0)))
		err_set(why, e, "read key %s: %s", path, err_name(e));
	else
		text[st.st_size] = '\0';
	close(fd);
	return e;
}

/* The key of a file that parses: P-256 with a scalar in range. The public half is always recomputed from it,
 * since mbedTLS believes the one that may stand in the file. */
static enum err
check_private(struct key *key)
{
	if (!key_is_p256(&key->pk))
		return ERR_UNSUPPORTED;
	mbedtls_ecp_keypair *pair = mbedtls_pk_ec(key->pk);
	mbedtls_ecp_group *grp = &pair->MBEDTLS_PRIVATE(grp);
	if (mbedtls_ecp_check_privkey(grp, &pair->MBEDTLS_PRIVATE(d)) != 0 ||
	    mbedtls_ecp_mul(grp, &pair->MBEDTLS_PRIVATE(Q), &pair->MBEDTLS_PRIVATE(d), &grp->G,
		rng_mbedtls, NULL) != 0)
		return ERR_INVALID;
	return complete(key);
}

enum err
key_load(struct key **out, const char *path, struct why *why)
{
	char text[KEY_PEM_MAX] = "";
	struct key *key = NULL;
	enum err e = read_private(path, text, why);

	if (e)
		goto out;
	key = new_key();
	if (!key) {
		e = err_set(why, ERR_NOMEM, "no memory for key %s", path);
		goto out;
	}
	if (mbed_pk_parse_key(&key->pk, (const uint8_t *)text, strlen(text) + 1) != 0 ||
	    !strstr(text, "-----BEGIN ")) {
		e = err_set(why, ERR_INVALID, "key %s is not an unencrypted PEM private key", path);
		goto out;
	}
	e = check_private(key);
	if (e == ERR_UNSUPPORTED)
		err_set(why, e, "key %s is not a P-256 key", path);
	else if (e)
		err_set(why, e, "key %s cannot be used: %s", path, err_name(e));
out:
	hash_wipe(text, sizeof(text));
	if (e)
		key_free(key);
	else
		*out = key;
	return e;
}

enum err
key_save(const struct key *key, const char *path, struct why *why)
{
	char text[KEY_PEM_MAX];
	struct stat st;
	enum err e;

	if (lstat(path, &st) == 0)
		return err_set(why, ERR_EXISTS, "%s exists already", path);
	e = key_pem(key, text);
	if (e)
		err_set(why, e, "cannot encode a key: %s", err_name(e));
	else
		e = file_write(path, text, strlen(text), 0600, why);
	hash_wipe(text, sizeof(text));
	return e;
}

void
key_free(struct key *key)
{
	if (!key)
		return;
	sign_detach(key);
	mbedtls_pk_free(&key->pk);
	hash_wipe(key, sizeof(*key));
	free(key);
}

const uint8_t *
key_spki(const struct key *key)
{
	return key->spki;
}

enum err
key_pem(const struct key *key, char *out)
{
	mbedtls_pk_context *pk = (mbedtls_pk_context *)(uintptr_t)&key->pk;

	return mbedtls_pk_write_key_pem(pk, (unsigned char *)out, KEY_PEM_MAX) == 0 ? ERR_OK
										    : ERR_NOMEM;
}

void
key_id(uint8_t out[HASH_LEN], const uint8_t spki[KEY_SPKI_LEN])
{
	hash_sha256(out, spki, KEY_SPKI_LEN);
}

enum err
key_check_spki(const uint8_t *spki, size_t len)
{
	mbedtls_ecp_group grp;
	mbedtls_ecp_point q;
	const size_t prefix = sizeof(spki_prefix) - 1;

	if (len != KEY_SPKI_LEN || !key_has_prefix(spki))
		return ERR_INVALID;
	mbedtls_ecp_group_init(&grp);
	mbedtls_ecp_point_init(&q);
	bool good = mbedtls_ecp_group_load(&grp, MBEDTLS_ECP_DP_SECP256R1) == 0 &&
	    mbedtls_ecp_point_read_binary(&grp, &q, spki + prefix, len - prefix) == 0 &&
	    mbedtls_ecp_check_pubkey(&grp, &q) == 0;
	mbedtls_ecp_point_free(&q);
	mbedtls_ecp_group_free(&grp);
	return good ? ERR_OK : ERR_INVALID;
}
