/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "hash.h"
#include "session.h"
#include "transport.h"

/*
 * A peer that answers the n-th connection with the n-th text and closes: whatever a real coordinator would never send can
 * come over it. It runs in a child process on a Unix socket.
 */
static char dir[64], socket_path[96];
static pid_t peer;

static void
serve(int listener, const char *const *answers)
{
	char request[8192];

	for (size_t i = 0; answers[i]; i++) {
		int fd = accept(listener, NULL, NULL);
		size_t len = 0;
		while (len < sizeof(request) - 1) {
			ssize_t n = read(fd, request + len, sizeof(request) - 1 - len);
			if (n <= 0)
				break;
			len += (size_t)n;
			request[len] = '\0';
			if (strstr(request, "\r\n\r\n"))
				break;
		}
		if (strcmp(answers[i], "silence") == 0)
			sleep(60);
		/* "range=FROM,ANSWER": only to a request that asks for the bytes from there on. */
		const char *answer = answers[i];
		if (strncmp(answer, "range=", 6) == 0) {
			char want[64];
			answer = strchr(answer, ',') + 1;
			snprintf(want, sizeof(want), "\r\nRange: bytes=%.*s-\r\n",
			    (int)(answer - answers[i] - 7), answers[i] + 6);
			if (!strstr(request, want))
				answer = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
		}
		(void)!write(fd, answer, strlen(answer));
		close(fd);
	}
	_exit(0);
}

static void
start(const char *const *answers)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	strcpy(dir, "/tmp/test_transport.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(socket_path, sizeof(socket_path), "%s/s", dir);
	strcpy(to.sun_path, socket_path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(listen(fd, 8), 0);
	peer = fork();
	if (peer == 0) {
		/* A failed assertion leaves it behind; it must not hold this program's output open. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(60);
		serve(fd, answers);
	}
	close(fd);
}

static void
finish(void)
{
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	assert_int_equal(file_empty_dir(dir, NULL), ERR_OK);
	rmdir(dir);
}
#define START(...) start((const char *const[]){__VA_ARGS__, NULL})

static struct transport *
open_transport(bool (*cancel)(void *))
{
	const struct transport_options options = {.unix_socket = socket_path, .cancel = cancel};
	struct transport *t;

	assert_int_equal(transport_new(&t, &options, NULL), ERR_OK);
	return t;
}

static void
test_answers(void **state)
{
	struct transport_answer a;
	const struct transport_request get = {.method = "GET", .url = "http://x/y"};

	(void)state;
	START("HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: "
	      "5\r\n\r\nhello",
	    "HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}",
	    "HTTP/1.1 204 No Content\r\n\r\n",
	    "HTTP/1.1 302 Found\r\nLocation: http://x/z\r\nContent-Length: 0\r\n\r\n");
	struct transport *t = open_transport(NULL);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	assert_int_equal(a.status, 200);
	assert_string_equal(buf_str(&a.body), "hello");
	assert_true(a.retry_after_s < 0);
	assert_int_equal(a.date, 784111777);
	transport_answer_deinit(&a);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	assert_int_equal(a.status, 503);
	assert_true(a.retry_after_s == 7.0);
	assert_int_equal(a.date, 0);
	transport_answer_deinit(&a);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	assert_int_equal(a.status, 204);
	assert_true(a.retry_after_s < 0);
	transport_answer_deinit(&a);
	/* A redirect is an answer like any other: nothing is sent elsewhere. */
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	assert_int_equal(a.status, 302);
	transport_answer_deinit(&a);
	transport_free(t);
	finish();
}

static void
test_broken(void **state)
{
	struct transport_answer a;
	const struct transport_request get = {
	    .method = "GET", .url = "http://x/y", .answer_max = 100};
	struct why why;

	(void)state;
	START("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", "nonsense\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"
	    "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
	    "67890123456789"
	    "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
	    "67890123456789");
	struct transport *t = open_transport(NULL);
	assert_int_equal(transport_do(t, &get, &a, &why), ERR_CLOSED);
	transport_answer_deinit(&a);
	assert_int_equal(transport_do(t, &get, &a, &why), ERR_CLOSED);
	transport_answer_deinit(&a);
	assert_int_equal(transport_do(t, &get, &a, &why), ERR_LIMIT);
	transport_answer_deinit(&a);
	transport_free(t);
	finish();
	/* Nobody there. */
	t = open_transport(NULL);
	assert_int_equal(transport_do(t, &get, &a, &why), ERR_CLOSED);
	assert_non_null(strstr(why.text, "http://x/y"));
	transport_answer_deinit(&a);
	transport_free(t);
}

static bool
yes(void *context)
{
	(void)context;
	return true;
}

static void
test_timeout_and_cancel(void **state)
{
	struct transport_answer a;
	struct transport_request get = {.method = "GET", .url = "http://x/y", .idle_s = 1};

	(void)state;
	START("silence");
	struct transport *t = open_transport(NULL);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_TIMEOUT);
	transport_answer_deinit(&a);
	transport_free(t);
	get.idle_s = 50;
	t = open_transport(yes);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_AGAIN);
	transport_answer_deinit(&a);
	transport_free(t);
	finish();
}

static struct transport_sink
make_sink(uint64_t max)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/sink", dir);
	struct transport_sink s = {
	    .fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), .max = max, .hash = hash_new()};
	hash_start(s.hash);
	return s;
}

static void
close_sink(struct transport_sink *s)
{
	hash_free(s->hash);
	close(s->fd);
}

static void
assert_sink(const struct transport_sink *s, const char *text)
{
	uint8_t want[HASH_LEN], got[HASH_LEN];
	char data[32] = "";

	hash_sha256(want, text, strlen(text));
	hash_finish(s->hash, got);
	assert_memory_equal(want, got, HASH_LEN);
	assert_int_equal(s->at, strlen(text));
	assert_int_equal(lseek(s->fd, 0, SEEK_END), (off_t)strlen(text));
	assert_int_equal(file_pread(s->fd, data, strlen(text), 0), ERR_OK);
	assert_string_equal(data, text);
}

/* A download into a file: a whole one, the rest of one, one that begins again, an error that must not land in it. */
static void
test_sink(void **state)
{
	struct transport_answer a;

	(void)state;
	START("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
	    "HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nbad",
	    "range=5,HTTP/1.1 206 Part\r\nContent-Range: bytes 5-8/9\r\nContent-Length: "
	    "4\r\n\r\nmore",
	    "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond");
	struct transport_sink s = make_sink(9);
	const struct transport_request get = {.method = "GET", .url = "http://x/y", .sink = &s};
	struct transport *t = open_transport(NULL);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	transport_answer_deinit(&a);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	assert_int_equal(a.status, 404);
	assert_string_equal(buf_str(&a.body), "bad");
	transport_answer_deinit(&a);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	transport_answer_deinit(&a);
	assert_false(s.restarted);
	assert_sink(&s, "firstmore");
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_OK);
	transport_answer_deinit(&a);
	assert_true(s.restarted);
	assert_sink(&s, "second");
	close_sink(&s);
	transport_free(t);
	finish();
}

/* What came before the cut is not asked for again; a part from elsewhere is not put behind it. */
static void
test_sink_goes_on(void **state)
{
	struct transport_answer a;
	struct session *session;

	(void)state;
	START("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfir",
	    "range=3,HTTP/1.1 206 Part\r\nContent-Range: bytes 3-8/9\r\nContent-Length: "
	    "6\r\n\r\nst",
	    "range=5,HTTP/1.1 206 Part\r\nContent-Range: bytes 3-8/9\r\nContent-Length: "
	    "6\r\n\r\nstmore",
	    "range=5,HTTP/1.1 206 Part\r\nContent-Length: 4\r\n\r\nmore",
	    "range=5,HTTP/1.1 206 Part\r\nContent-Range: bytes 5-8/9\r\nContent-Length: "
	    "4\r\n\r\nmore");
	struct transport_sink s = make_sink(9);
	struct session_call call = {
	    .path = "/y", .attempts = 2, .request = {.method = "GET", .sink = &s}};
	assert_int_equal(session_open_socket(&session, socket_path, NULL), ERR_OK);
	assert_int_equal(session_do(session, &call, &a, NULL), ERR_CLOSED);
	transport_answer_deinit(&a);
	assert_int_equal(s.at, 5);
	call.attempts = 1;
	assert_int_equal(session_do(session, &call, &a, NULL), ERR_CORRUPT);
	transport_answer_deinit(&a);
	assert_int_equal(session_do(session, &call, &a, NULL), ERR_CORRUPT);
	transport_answer_deinit(&a);
	assert_int_equal(session_do(session, &call, &a, NULL), ERR_OK);
	transport_answer_deinit(&a);
	assert_false(s.restarted);
	assert_sink(&s, "firstmore");
	close_sink(&s);
	session_free(session);
	finish();
}

static void
test_sink_limit(void **state)
{
	struct transport_answer a;

	(void)state;
	START("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
	struct transport_sink s = make_sink(9);
	const struct transport_request get = {.method = "GET", .url = "http://x/y", .sink = &s};
	struct transport *t = open_transport(NULL);
	assert_int_equal(transport_do(t, &get, &a, NULL), ERR_LIMIT);
	transport_answer_deinit(&a);
	assert_int_equal(lseek(s.fd, 0, SEEK_END), 0);
	close_sink(&s);
	transport_free(t);
	finish();
}

/* The layer above: 503 is tried again while attempts are left; a refusal is not, and its problem becomes the reason. */
static void
test_session_retries(void **state)
{
	struct session *s;
	struct transport_answer a;
	struct why why;
	enum problem_type type;
	struct session_call call = {
	    .path = "/v1/jobs", .attempts = 3, .request = {.method = "GET"}};

	(void)state;
	START("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "broken",
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	    "HTTP/1.1 409 No\r\nContent-Length: 96\r\n\r\n"
	    "{\"type\":\"urn:rivulet:error:round-closed\",\"title\":\"Too "
	    "late\",\"status\":409,\"detail\":\"it is over\"}   ",
	    "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
	    "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(session_open_socket(&s, socket_path, NULL), ERR_OK);
	assert_int_equal(session_do(s, &call, &a, &why), ERR_OK);
	assert_int_equal(a.status, 200);
	assert_int_equal(session_problem(&a, NULL, NULL), ERR_OK);
	transport_answer_deinit(&a);
	assert_int_equal(session_do(s, &call, &a, &why), ERR_OK);
	assert_int_equal(a.status, 409);
	assert_int_equal(session_problem(&a, &type, &why), ERR_STATE);
	assert_int_equal(type, PROBLEM_ROUND_CLOSED);
	assert_string_equal(why.text, "it is over (round-closed)");
	transport_answer_deinit(&a);
	call.attempts = 1;
	assert_int_equal(session_do(s, &call, &a, &why), ERR_OK);
	assert_int_equal(a.status, 503);
	assert_int_equal(session_problem(&a, NULL, NULL), ERR_CLOSED);
	transport_answer_deinit(&a);
	assert_int_equal(session_do(s, &call, &a, &why), ERR_OK);
	assert_int_equal(session_problem(&a, &type, &why), ERR_NOTFOUND);
	assert_int_equal(type, PROBLEM_NONE);
	transport_answer_deinit(&a);
	session_free(s);
	finish();
}

/* --- names */

/* libcurl's calls come here: a test has the only answers. */
static unsigned lookups;

int __attribute__((visibility("default"))) getaddrinfo(
    const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;

	*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	if (!node || strcmp(node, "coordinator.test") != 0)
		return real(node, service, hints, out);
	__atomic_add_fetch(&lookups, 1, __ATOMIC_SEQ_CST);
	return real("127.0.0.1", service, hints, out);
}

/* One answer, then nobody. Its port. */
static uint16_t
answer_once(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(to);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(listen(fd, 8), 0);
	peer = fork();
	if (peer == 0) {
		static const char *const answers[] = {
		    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", NULL};
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd, answers);
	}
	close(fd);
	return ntohs(to.sin_port);
}

/* A coordinator that moved is found as soon as the name says so: after a failure the name is looked up afresh, else not. */
static void
test_moved(void **state)
{
	struct transport *t;
	struct transport_answer answer;
	struct why why = {""};
	char url[64];
	int status;

	(void)state;
	snprintf(url, sizeof(url), "http://coordinator.test:%u/", answer_once());
	assert_int_equal(
	    transport_new(&t, &(struct transport_options){.unix_socket = NULL}, NULL), ERR_OK);
	const struct transport_request r = {.method = "GET", .url = url};
	lookups = 0;
	for (int i = 0; i < 2; i++) {
		if (transport_do(t, &r, &answer, &why))
			fail_msg("%s", why.text);
		transport_answer_deinit(&answer);
	}
	assert_int_equal(lookups, 1);
	assert_int_equal(waitpid(peer, &status, 0), peer);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(transport_do(t, &r, &answer, NULL), ERR_CLOSED);
		transport_answer_deinit(&answer);
		assert_int_equal(lookups, 1 + i);
	}
	transport_free(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_broken),
	    cmocka_unit_test(test_timeout_and_cancel),
	    cmocka_unit_test(test_sink),
	    cmocka_unit_test(test_sink_goes_on),
	    cmocka_unit_test(test_sink_limit),
	    cmocka_unit_test(test_session_retries),
	    cmocka_unit_test(test_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
