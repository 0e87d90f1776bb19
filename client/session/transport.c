#include "transport.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fault.h"
#include "file.h"
#include "hash.h"
#include "num.h"
#include "version.h"

#define ANSWER_MAX (1u << 20)
#define CONNECT_TIMEOUT_S 20.0
#define IDLE_S 60.0
#define SLOWEST_BYTES_S 1L
/* A gateway that forgot the connection, or a peer that is gone, says nothing: after a minute it is given up. */
#define KEEPALIVE_IDLE_S 30L
#define KEEPALIVE_EVERY_S 10L
#define UNACKNOWLEDGED_MS 30000u
#define NAME_KEPT_S 60L /* as long as libcurl by default */

struct transport {
	CURL *curl;
	char *unix_socket, *ca, *cert, *key;
	bool insecure;
	bool look_up; /* the last exchange failed: its name may lead elsewhere by now */
	bool (*cancel)(void *context);
	void *context;
	/* The exchange in progress. */
	const struct transport_request *request;
	struct transport_answer *answer;
	uint64_t sent;
	double body_at; /* when the answer's body began, as date_at; 0: not yet */
	bool sink_begun;
	enum err failed; /* what a callback ran into */
	char text[CURL_ERROR_SIZE];
};

static enum err
copy_text(char **out, const char *text)
{
	*out = text ? strdup(text) : NULL;
	return text && !*out ? ERR_NOMEM : ERR_OK;
}

enum err
transport_new(struct transport **out, const struct transport_options *options, struct why *why)
{
	struct transport *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(why, ERR_NOMEM, "no memory for a connection");
	t->insecure = options->insecure;
	t->cancel = options->cancel;
	t->context = options->context;
	t->curl = curl_easy_init();
	if (!t->curl || copy_text(&t->unix_socket, options->unix_socket) ||
	    copy_text(&t->ca, options->ca_pem) || copy_text(&t->cert, options->cert_pem) ||
	    copy_text(&t->key, options->key_pem)) {
		transport_free(t);
		return err_set(why, ERR_NOMEM, "no memory for a connection");
	}
	*out = t;
	return ERR_OK;
}

void
transport_free(struct transport *t)
{
	if (!t)
		return;
	if (t->curl)
		curl_easy_cleanup(t->curl);
	if (t->key)
		hash_wipe(t->key, strlen(t->key));
	free(t->unix_socket);
	free(t->ca);
	free(t->cert);
	free(t->key);
	free(t);
}

/* Does a 206 begin where the sink ends? */
static bool
range_fits(struct transport *t)
{
	struct curl_header *h = NULL;
	unsigned long long from;

	if (curl_easy_header(t->curl, "Content-Range", 0, CURLH_HEADER, -1, &h) != CURLHE_OK ||
	    sscanf(h->value, "bytes %20llu-", &from) != 1)
		return false;
	return from == t->request->sink->at;
}

/* Appends to the sink; the first bytes of a 200 to a ranged request start it over. */
static enum err
sink_write(struct transport *t, long status, const char *data, size_t len)
{
	struct transport_sink *s = t->request->sink;

	if (status == 200 && s->at > 0 && !t->sink_begun) {
		s->restarted = true;
		s->at = 0;
		if (s->hash)
			hash_start(s->hash);
		if (ftruncate(s->fd, 0) != 0)
			return err_errno(NULL, "truncate");
	}
	if (status == 206 && !t->sink_begun && !range_fits(t))
		return ERR_CORRUPT;
	t->sink_begun = true;
	if (len > s->max || s->at > s->max - len)
		return ERR_LIMIT;
	enum err e = file_pwrite(s->fd, data, len, s->at);
	if (e)
		return e;
	if (s->hash)
		hash_update(s->hash, data, len);
	s->at += len;
	return ERR_OK;
}

static double
elapsed(void)
{
	return (double)clock_elapsed_ms() / 1000;
}

static size_t
on_write(char *data, size_t size, size_t n, void *user)
{
	struct transport *t = user;
	size_t len = size * n;
	long status = 0;

	if (t->body_at <= 0)
		t->body_at = elapsed();
	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	if (t->request->sink && (status == 200 || status == 206))
		t->failed = sink_write(t, status, data, len);
	else
		t->failed = buf_append(&t->answer->body, data, len);
	return t->failed ? 0 : len;
}

static size_t
on_read(char *out, size_t size, size_t n, void *user)
{
	struct transport *t = user;
	const struct transport_request *r = t->request;
	uint64_t left = r->body_bytes - t->sent;
	size_t len = size * n < left ? size * n : (size_t)left;

	t->failed = file_pread(r->body_fd, out, len, r->body_at + t->sent);
	if (t->failed)
		return CURL_READFUNC_ABORT;
	t->sent += len;
	FAULT("client.body");
	return len;
}

static int
on_seek(void *user, curl_off_t offset, int origin)
{
	struct transport *t = user;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->request->body_bytes)
		return CURL_SEEKFUNC_CANTSEEK;
	t->sent = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

static int
on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct transport *t = user;

	(void)a, (void)b, (void)c, (void)d;
	return t->cancel && t->cancel(t->context);
}

/* The first refusal of an option sticks in *rc. */
#define SET(option, value) \
	do { \
		if (rc == CURLE_OK) \
			rc = curl_easy_setopt(t->curl, option, value); \
	} while (0)

static CURLcode
set_trust(struct transport *t)
{
	CURLcode rc = CURLE_OK;
	struct curl_blob blob = {.flags = CURL_BLOB_COPY};

	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_SSL_VERIFYPEER, t->insecure ? 0L : 1L);
	SET(CURLOPT_SSL_VERIFYHOST, t->insecure ? 0L : 2L);
	SET(CURLOPT_CERTINFO, t->insecure ? 1L : 0L);
	if (t->ca) {
		/* Without this the system's directory of CAs would be trusted as well. */
		SET(CURLOPT_CAPATH, NULL);
		blob.data = t->ca;
		blob.len = strlen(t->ca);
		SET(CURLOPT_CAINFO_BLOB, &blob);
	}
	if (!t->cert || !t->key)
		return rc;
	SET(CURLOPT_SSLCERTTYPE, "PEM");
	blob.data = t->cert;
	blob.len = strlen(t->cert);
	SET(CURLOPT_SSLCERT_BLOB, &blob);
	SET(CURLOPT_SSLKEYTYPE, "PEM");
	blob.data = t->key;
	blob.len = strlen(t->key);
	SET(CURLOPT_SSLKEY_BLOB, &blob);
	return rc;
}

static CURLcode
set_body(struct transport *t, const struct transport_request *r)
{
	CURLcode rc = CURLE_OK;

	if (strcmp(r->method, "HEAD") == 0) {
		SET(CURLOPT_NOBODY, 1L);
	} else if (r->body_bytes > 0) {
		SET(CURLOPT_UPLOAD, 1L);
		SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body_bytes);
		SET(CURLOPT_READFUNCTION, on_read);
		SET(CURLOPT_READDATA, t);
		SET(CURLOPT_SEEKFUNCTION, on_seek);
		SET(CURLOPT_SEEKDATA, t);
		(void)curl_easy_setopt(t->curl, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
		/* By default libcurl stops waiting for the answer after a second and sends the body. */
		SET(CURLOPT_EXPECT_100_TIMEOUT_MS, 30000L);
	} else if (r->body || strcmp(r->method, "POST") == 0) {
		SET(CURLOPT_POSTFIELDS, r->body ? (const char *)r->body : "");
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
	}
	SET(CURLOPT_CUSTOMREQUEST, r->method);
	return rc;
}

static int
on_socket(void *user, curl_socket_t fd, curlsocktype purpose)
{
	const unsigned most = UNACKNOWLEDGED_MS;

	(void)user, (void)purpose;
	/* Not for a Unix socket, which has no such option and no such trouble. */
	(void)!setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof(most));
	return CURL_SOCKOPT_OK;
}

static CURLcode
set_times(struct transport *t, const struct transport_request *r)
{
	double idle = r->idle_s > 0 ? r->idle_s : IDLE_S;
	double connect = r->connect_s > 0 ? r->connect_s : CONNECT_TIMEOUT_S;
	CURLcode rc = CURLE_OK;

	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	SET(CURLOPT_TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
	SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
	SET(CURLOPT_DNS_CACHE_TIMEOUT, t->look_up ? 0L : NAME_KEPT_S);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(connect * 1000));
	SET(CURLOPT_LOW_SPEED_LIMIT, r->least_rate > 0 ? r->least_rate : SLOWEST_BYTES_S);
	SET(CURLOPT_LOW_SPEED_TIME, (long)(idle + 0.999));
	return rc;
}

static CURLcode
set_all(struct transport *t, const struct transport_request *r, struct curl_slist *headers)
{
	char agent[64];
	CURLcode rc = set_trust(t);

	snprintf(agent, sizeof(agent), "rivulet/%s", version_text());
	if (rc == CURLE_OK)
		rc = set_body(t, r);
	if (rc == CURLE_OK)
		rc = set_times(t, r);
	SET(CURLOPT_ERRORBUFFER, t->text);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_URL, r->url);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_USERAGENT, agent);
	/* A wish: after a name that could not be resolved libcurl 7.88 holds on to a buffer and refuses another size. */
	(void)curl_easy_setopt(t->curl, CURLOPT_BUFFERSIZE, 128L << 10);
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_XFERINFOFUNCTION, on_progress);
	SET(CURLOPT_XFERINFODATA, t);
	SET(CURLOPT_WRITEFUNCTION, on_write);
	SET(CURLOPT_WRITEDATA, t);
	SET(CURLOPT_HTTPHEADER, headers);
	if (t->unix_socket)
		SET(CURLOPT_UNIX_SOCKET_PATH, t->unix_socket);
	return rc;
}

static bool
list_add(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (!longer)
		return false;
	*list = longer;
	return true;
}

static enum err
list_headers(struct curl_slist **out, const struct transport_request *r)
{
	/* An empty "Expect:" keeps libcurl from adding one of its own. */
	bool ok = list_add(out, r->body_bytes > 0 ? "Expect: 100-continue" : "Expect:");
	char range[64];

	if (ok && r->sink && r->sink->at > 0) {
		snprintf(
		    range, sizeof(range), "Range: bytes=%llu-", (unsigned long long)r->sink->at);
		ok = list_add(out, range);
	}
	for (size_t i = 0; ok && r->headers && r->headers[i]; i++)
		ok = list_add(out, r->headers[i]);
	if (ok)
		return ERR_OK;
	curl_slist_free_all(*out);
	return ERR_NOMEM;
}

static enum err
map_code(struct transport *t, CURLcode rc)
{
	switch (rc) {
	case CURLE_OK:
		return ERR_OK;
	case CURLE_ABORTED_BY_CALLBACK:
		return t->failed ? t->failed : ERR_AGAIN;
	case CURLE_WRITE_ERROR:
	case CURLE_READ_ERROR:
		return t->failed ? t->failed : ERR_CLOSED;
	case CURLE_OPERATION_TIMEDOUT:
		return ERR_TIMEOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return ERR_DENIED;
	case CURLE_OUT_OF_MEMORY:
		return ERR_NOMEM;
	case CURLE_URL_MALFORMAT:
	case CURLE_BAD_FUNCTION_ARGUMENT:
		return ERR_INVALID;
	default:
		return ERR_CLOSED;
	}
}

/* OpenSSL's X509_V_ERR_... numbers, which libcurl passes on; the name is libcurl's own check, after which the number is
 * still the 1 that it began with. */
static enum transport_distrust
distrust_of(struct transport *t, CURLcode rc)
{
	long verified = 0;

	if (rc != CURLE_PEER_FAILED_VERIFICATION)
		return rc == CURLE_SSL_ISSUER_ERROR ? TRANSPORT_ISSUER : TRANSPORT_TRUSTED;
	curl_easy_getinfo(t->curl, CURLINFO_SSL_VERIFYRESULT, &verified);
	switch (verified) {
	case 0:
	case 1:
	case 62:
	case 64:
		return TRANSPORT_NAME;
	case 9:
		return TRANSPORT_NOT_YET;
	case 10:
		return TRANSPORT_EXPIRED;
	case 2:
	case 7:
	case 18:
	case 19:
	case 20:
	case 21:
		return TRANSPORT_ISSUER;
	default:
		return TRANSPORT_OTHER;
	}
}

static void
copy_info(char *out, size_t room, const struct curl_slist *lines, const char *key)
{
	size_t len = strlen(key);

	for (; lines; lines = lines->next)
		if (strncmp(lines->data, key, len) == 0 && lines->data[len] == ':')
			snprintf(out, room, "%s", lines->data + len + 1);
}

/* Value of the answer's header, NULL if it did not come. */
static const char *
header_of(struct transport *t, const char *name)
{
	struct curl_header *h = NULL;

	return curl_easy_header(t->curl, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value
										     : NULL;
}

/* From a peer that may say anything: what is no name of a request is none. */
static void
take_id(struct transport *t, const char *name, unsigned origin, char out[REQUEST_ID_MAX])
{
	struct curl_header *h = NULL;

	if (curl_easy_header(t->curl, name, 0, origin, -1, &h) == CURLHE_OK &&
	    request_id_valid(h->value))
		strcpy(out, h->value);
}

static void
take_ids(struct transport *t, struct transport_answer *out)
{
	take_id(t, "Rivulet-Request", CURLH_1XX, out->request);
	take_id(t, "Rivulet-Request", CURLH_HEADER, out->request);
	take_id(t, "Rivulet-Began", CURLH_HEADER, out->began);
}

static void
take_upload(struct transport *t, struct transport_answer *out)
{
	const char *offset = header_of(t, "Upload-Offset"), *spool = header_of(t, "Rivulet-Spool");

	out->has_offset = offset && num_u64(offset, INT64_MAX, &out->offset);
	out->in_memory = spool && strcmp(spool, "memory") == 0;
}

static uint64_t
figure_of(struct transport *t, CURLINFO body, CURLINFO head)
{
	curl_off_t bytes = 0;
	long heads = 0;

	curl_easy_getinfo(t->curl, body, &bytes);
	curl_easy_getinfo(t->curl, head, &heads);
	return (uint64_t)(bytes > 0 ? bytes : 0) + (uint64_t)(heads > 0 ? heads : 0);
}

static void
take_facts(struct transport *t, struct transport_answer *out)
{
	struct curl_certinfo *chain = NULL;
	curl_off_t after = 0;

	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &out->status);
	if (curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &after) == CURLE_OK && after > 0)
		out->retry_after_s = (double)after;
	const char *date = header_of(t, "Date");
	if (date) {
		time_t when = curl_getdate(date, NULL);
		out->date = when > 0 ? (int64_t)when : 0;
		out->date_at = t->body_at > 0 ? t->body_at : elapsed();
	}
	take_upload(t, out);
	take_ids(t, out);
	out->sent_bytes = figure_of(t, CURLINFO_SIZE_UPLOAD_T, CURLINFO_REQUEST_SIZE);
	out->received_bytes = figure_of(t, CURLINFO_SIZE_DOWNLOAD_T, CURLINFO_HEADER_SIZE);
	if (!t->insecure || curl_easy_getinfo(t->curl, CURLINFO_CERTINFO, &chain) != CURLE_OK ||
	    !chain || chain->num_of_certs < 1)
		return;
	copy_info(out->issuer, sizeof(out->issuer), chain->certinfo[0], "Issuer");
	copy_info(out->subject, sizeof(out->subject), chain->certinfo[0], "Subject");
	copy_info(out->expires, sizeof(out->expires), chain->certinfo[0], "Expire date");
}

/* A device without a clock of its own begins in 1970: then the date says more than the certificate's trouble. */
static enum err
explain(
    struct transport *t, CURLcode rc, enum err e, enum transport_distrust distrust, struct why *why)
{
	const char *text = t->failed ? err_name(t->failed)
	    : t->text[0]	     ? t->text
				     : curl_easy_strerror(rc);
	char today[64] = "";
	time_t now = clock_unix();
	struct tm tm;

	if ((distrust == TRANSPORT_EXPIRED || distrust == TRANSPORT_NOT_YET) && gmtime_r(&now, &tm))
		strftime(
		    today, sizeof(today), "; by this device's clock it is %Y-%m-%d %H:%M UTC", &tm);
	return err_set(why, e, "%s: %s%s%s", t->request->url,
	    t->failed ? "not to be stored or read on this machine: " : "", text, today);
}

enum err
transport_do(struct transport *t, const struct transport_request *request,
    struct transport_answer *out, struct why *why)
{
	struct curl_slist *headers = NULL;

	*out = (struct transport_answer){.retry_after_s = -1};
	buf_init(&out->body, request->answer_max ? request->answer_max : ANSWER_MAX);
	t->request = request;
	t->answer = out;
	t->sent = 0;
	t->body_at = 0;
	t->sink_begun = false;
	t->failed = ERR_OK;
	t->text[0] = '\0';
	if (list_headers(&headers, request))
		return err_set(why, ERR_NOMEM, "no memory for a request");
	curl_easy_reset(t->curl);
	CURLcode rc = set_all(t, request, headers);
	if (rc == CURLE_OK)
		rc = curl_easy_perform(t->curl);
	t->look_up = rc != CURLE_OK && rc != CURLE_ABORTED_BY_CALLBACK;
	take_facts(t, out);
	out->distrust = distrust_of(t, rc);
	curl_slist_free_all(headers);
	enum err e = map_code(t, rc);
	if (e == ERR_AGAIN)
		return err_set(why, e, "cancelled");
	return e ? explain(t, rc, e, out->distrust, why) : ERR_OK;
}

void
transport_answer_deinit(struct transport_answer *a)
{
	buf_deinit(&a->body);
}
