#include <mbedtls/chachapoly.h>
#include <mbedtls/gcm.h>

#include "speed.h"

enum speed_suite
speed_preferred(void)
{
	return SPEED_CHACHA20_POLY1305;
}

struct seal {
	uint8_t key[32], nonce[12], header[13], tag[16];
	uint8_t in[SPEED_RECORD], out[SPEED_RECORD];
};

static int
chacha(struct seal *s, unsigned records)
{
	mbedtls_chachapoly_context ctx;
	int bad;

	mbedtls_chachapoly_init(&ctx);
	bad = mbedtls_chachapoly_setkey(&ctx, s->key);
	for (unsigned i = 0; i < records && bad == 0; i++)
		bad = mbedtls_chachapoly_encrypt_and_tag(&ctx, sizeof(s->in), s->nonce, s->header,
		    sizeof(s->header), s->in, s->out, s->tag);
	mbedtls_chachapoly_free(&ctx);
	return bad;
}

static int
gcm(struct seal *s, unsigned records)
{
	mbedtls_gcm_context ctx;
	int bad;

	mbedtls_gcm_init(&ctx);
	bad = mbedtls_gcm_setkey(&ctx, MBEDTLS_CIPHER_ID_AES, s->key, 128);
	for (unsigned i = 0; i < records && bad == 0; i++)
		bad = mbedtls_gcm_crypt_and_tag(&ctx, MBEDTLS_GCM_ENCRYPT, sizeof(s->in), s->nonce,
		    sizeof(s->nonce), s->header, sizeof(s->header), s->in, s->out, sizeof(s->tag),
		    s->tag);
	mbedtls_gcm_free(&ctx);
	return bad;
}

enum err
speed_seal(enum speed_suite suite, unsigned records)
{
	struct seal s = {{0}, {0}, {0}, {0}, {0}, {0}};

	return (suite == SPEED_AES_128_GCM ? gcm : chacha)(&s, records) == 0 ? ERR_OK : ERR_NOMEM;
}
