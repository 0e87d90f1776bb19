#include <string.h>
#include <time.h>

#include "hash.h"
#include "mbed.h"
#include "resume.h"

static const uint8_t latest_id[1] = {0};

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec;
}

static int
store(struct sessions *sessions, const uint8_t *id, size_t len, const mbedtls_ssl_session *session)
{
	uint8_t blob[SESSIONS_BLOB_MAX];
	size_t blob_len = 0;
	int bad = mbedtls_ssl_session_save(session, blob, sizeof(blob), &blob_len) != 0 ||
	    sessions_put(sessions, id, len, blob, blob_len, now());

	hash_wipe(blob, sizeof(blob));
	return bad;
}

static int
recall(struct sessions *sessions, const uint8_t *id, size_t len, mbedtls_ssl_session *session)
{
	uint8_t blob[SESSIONS_BLOB_MAX];
	size_t blob_len = sizeof(blob);

	if (sessions_get(sessions, id, len, blob, &blob_len, now()))
		return 1;
	int bad = mbedtls_ssl_session_load(session, blob, blob_len) != 0;
	hash_wipe(blob, blob_len);
	return bad;
}

#if MBED_3
static int
on_store(void *ctx, const unsigned char *id, size_t len, const mbedtls_ssl_session *session)
{
	return store(ctx, id, len, session);
}

static int
on_recall(void *ctx, const unsigned char *id, size_t len, mbedtls_ssl_session *session)
{
	return recall(ctx, id, len, session);
}
#else
static int
on_store(void *ctx, const mbedtls_ssl_session *session)
{
	return store(ctx, session->id, session->id_len, session);
}

static int
on_recall(void *ctx, mbedtls_ssl_session *session)
{
	uint8_t id[sizeof(session->id)];

	memcpy(id, session->id, sizeof(id));
	return recall(ctx, id, session->id_len, session);
}
#endif

void
tls_resume_serve(mbedtls_ssl_config *conf, struct sessions *sessions)
{
	mbedtls_ssl_conf_session_cache(conf, sessions, on_recall, on_store);
}

void
tls_resume_offer(mbedtls_ssl_context *ssl, struct sessions *sessions)
{
	mbedtls_ssl_session session;

	mbedtls_ssl_session_init(&session);
	if (recall(sessions, latest_id, sizeof(latest_id), &session) == 0)
		(void)mbedtls_ssl_set_session(ssl, &session);
	mbedtls_ssl_session_free(&session);
}

void
tls_resume_keep(const mbedtls_ssl_context *ssl, struct sessions *sessions)
{
	mbedtls_ssl_session session;

	mbedtls_ssl_session_init(&session);
	if (mbedtls_ssl_get_session(ssl, &session) == 0)
		(void)store(sessions, latest_id, sizeof(latest_id), &session);
	mbedtls_ssl_session_free(&session);
}
