/*
 * One end of a TLS connection on loopback, to try the crypto back end against other programs and against the
 * other back end.
 *   tlspeer init DIR                 makes ca, server, client, expired and stranger (.pem, .key) in DIR
 *   tlspeer serve DIR                prints its port; answers each HTTP request with what it knows of the peer
 *   tlspeer get DIR PORT NAME [WHO]  asks such a server twice, as WHO (none: no certificate), and prints the answers
 * NAME is what the server's certificate must say. Exit status 1 if TLS refuses, 2 for everything else.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/fleet.h"
#include "file.h"
#include "tls.h"

#define WAIT_MS 10000

static _Noreturn void
die(const char *what)
{
	fprintf(stderr, "tlspeer: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Writes key and certificate, and frees the member. */
static void
save(const char *dir, const char *name, struct fleet_member m)
{
	char path[512], text[4 * X509_DER_MAX];
	size_t len = sizeof(text);
	struct why why = {""};

	snprintf(path, sizeof(path), "%s/%s.key", dir, name);
	fleet_check(key_save(m.key, path, &why), &why);
	snprintf(path, sizeof(path), "%s/%s.pem", dir, name);
	fleet_check(x509_to_pem(text, &len, &m.cert), &why);
	fleet_check(file_write(path, text, len, 0644, &why), &why);
	fleet_free(&m);
}

static int
init(const char *dir)
{
	const int64_t day = 86400;
	struct fleet_member ca = fleet_ca("Rivulet CA"), other = fleet_ca("Rivulet CA");

	save(dir, "server", fleet_issue(&ca, X509_SERVER, "coordinator", -day, day));
	save(dir, "client", fleet_issue(&ca, X509_CLIENT, "device", -day, day));
	save(dir, "expired", fleet_issue(&ca, X509_CLIENT, "old device", -2 * day, -day));
	save(dir, "stranger", fleet_issue(&other, X509_CLIENT, "device", -day, day));
	save(dir, "ca", ca);
	fleet_free(&other);
	return 0;
}

static struct fleet_member
load(const char *dir, const char *name, bool with_key)
{
	struct fleet_member m = {.key = NULL};
	char path[512], *text;
	struct why why = {""};
	size_t len;

	snprintf(path, sizeof(path), "%s/%s.pem", dir, name);
	fleet_check(file_read(path, 4 * X509_DER_MAX, &text, &len, &why), &why);
	fleet_check(x509_from_pem(&m.cert, text, &why), &why);
	free(text);
	snprintf(path, sizeof(path), "%s/%s.key", dir, name);
	if (with_key)
		fleet_check(key_load(&m.key, path, &why), &why);
	return m;
}

/* Waits as the result asks; false if it is no request to wait. */
static bool
waited(int fd, enum tls_result r)
{
	struct pollfd p = {.fd = fd, .events = r == TLS_AGAIN_IN ? POLLIN : POLLOUT};

	return (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT) && poll(&p, 1, WAIT_MS) == 1;
}

static enum tls_result
shake(struct tls_session *s, int fd)
{
	enum tls_result r;

	do
		r = tls_handshake(s);
	while (waited(fd, r));
	return r;
}

static enum tls_result
write_all(struct tls_session *s, int fd, const char *text)
{
	size_t left = strlen(text), n;
	enum tls_result r = TLS_OK;

	while (left > 0 && (r == TLS_OK || waited(fd, r))) {
		r = tls_write(s, text, left, &n);
		text += n;
		left -= n;
	}
	return r;
}

/* Reads until the text `until` has come, or until the peer closes if it is NULL. */
static enum tls_result
read_text(struct tls_session *s, int fd, char *text, size_t room, const char *until)
{
	size_t used = 0, n;
	enum tls_result r = TLS_OK;

	while (used + 1 < room && (r == TLS_OK || waited(fd, r))) {
		r = tls_read(s, text + used, room - 1 - used, &n);
		used += n;
		text[used] = '\0';
		if (until && strstr(text, until))
			return TLS_OK;
	}
	return r;
}

static void
answer(struct tls_session *s, int fd)
{
	char request[8192] = "", body[256], reply[512];
	struct x509_info info = {.common_name = "nobody"};
	struct x509_cert cert;
	enum tls_result r = shake(s, fd);

	if (r == TLS_OK)
		r = read_text(s, fd, request, sizeof(request), "\r\n\r\n");
	if (r != TLS_OK) {
		fprintf(stderr, "tlspeer: %s\n", tls_why(s));
		return;
	}
	if (tls_peer_cert(s, &cert) == ERR_OK && x509_parse(&info, &cert, NULL) != ERR_OK)
		snprintf(info.common_name, sizeof(info.common_name), "unreadable");
	snprintf(body, sizeof(body), "peer=%s resumed=%d\n", info.common_name, tls_resumed(s));
	snprintf(reply, sizeof(reply),
	    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", strlen(body),
	    body);
	(void)write_all(s, fd, reply);
	tls_shutdown(s);
}

static _Noreturn void
serve(const char *dir)
{
	struct fleet_member ca = load(dir, "ca", false), me = load(dir, "server", true);
	struct tls_config config = {
	    .server = true, .ca = &ca.cert, .cert = &me.cert, .key = me.key, .cache_entries = 100};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	struct tls_context *ctx = NULL;
	struct why why = {""};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fleet_check(tls_context_new(&ctx, &config, &why), &why);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, len) != 0 ||
	    listen(listener, 10) != 0 || getsockname(listener, (struct sockaddr *)&at, &len) != 0)
		die("listen");
	printf("%d %s\n", ntohs(at.sin_port), tls_backend());
	fflush(stdout);
	for (;;) {
		struct tls_session *s = NULL;
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			die("accept");
		fleet_check(tls_session_new(&s, ctx, fd), &why);
		answer(s, fd);
		tls_session_free(s);
		close(fd);
	}
}

static int
ask(struct tls_context *ctx, int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct tls_session *s = NULL;
	struct why why = {""};
	char text[8192] = "";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		die("connect");
	fleet_check(tls_session_new(&s, ctx, fd), &why);
	enum tls_result r = shake(s, fd);
	if (r == TLS_OK)
		r = write_all(s, fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	if (r == TLS_OK)
		r = read_text(s, fd, text, sizeof(text), NULL);
	const char *body = strstr(text, "\r\n\r\n");
	if (body)
		printf("%.*s self=%d\n", (int)strcspn(body + 4, "\n"), body + 4, tls_resumed(s));
	else
		fprintf(stderr, "tlspeer: %s\n", tls_why(s));
	tls_shutdown(s);
	tls_session_free(s);
	close(fd);
	return body ? 0 : 1;
}

static int
get(const char *dir, int port, const char *name, const char *who)
{
	struct fleet_member ca = load(dir, "ca", false), me = {.key = NULL};
	struct tls_context *ctx = NULL;
	struct why why = {""};

	if (who)
		me = load(dir, who, true);
	struct tls_config config = {.ca = &ca.cert,
	    .cert = who ? &me.cert : NULL,
	    .key = me.key,
	    .peer_name = name,
	    .cache_entries = 1};
	fleet_check(tls_context_new(&ctx, &config, &why), &why);
	int bad = ask(ctx, port);
	if (!bad)
		bad = ask(ctx, port);
	tls_context_free(ctx);
	fleet_free(&me);
	return bad;
}

int
main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "init") == 0)
		return init(argv[2]);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(argv[2]);
	if ((argc == 5 || argc == 6) && strcmp(argv[1], "get") == 0)
		return get(argv[2], atoi(argv[3]), argv[4], argv[5]);
	fprintf(stderr, "usage: tlspeer init DIR | serve DIR | get DIR PORT NAME [WHO]\n");
	return 2;
}
