/*
 * Attacks on a coordinator, for make hostile: from loopback addresses of its own, with at most half a core.
 *
 *   attacker list                                     names, and who says that: nobody, a device, whoever has a token
 *   attacker burn SECONDS                             attacks nobody: uses half a core for nothing, to compare with
 *   attacker NAME HOME PORT SECONDS NETWORK           HOME/ca.pem is the coordinator's, and for a device there are cert.pem and
 *                                                     key.pem, for others token; connects from 127.0.NETWORK.2 to .30
 *
 * Prints one line: what was offered, what came of it, and what the attacker got.
 */
#include <errno.h>
#include <math.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include "../unit/rawtls.h"
#include "attacks.h"
#include "https.h"

#define SLOTS_MAX 4096
#define HALF 0.5
#define AFTERMATH_MS 150 /* for a second answer that must not come */
#define ADDRESSES 29
#define STATUSES 600

enum state { CLOSED /* as calloc and memset leave it */, CONNECTING, HANDSHAKE, ACTIVE };

struct slot {
	enum state state;
	int fd;
	struct tls_session *tls;
	struct rawtls *raw;
	char *text;
	size_t len, at;
	uint64_t since_ms, due_ms, answered_ms;
	uint32_t events;
	char line[16]; /* the last bytes read, to find status lines across reads */
};

static struct {
	const struct attack *attack;
	struct https_home home;
	struct tls_context *tls;
	unsigned network, next;
	struct sockaddr_in to;
	int epoll;
	struct slot *slots;
	/* offered */
	uint64_t connects, handshakes, texts, records, bytes;
	/* got */
	uint64_t closed, refused, statuses[STATUSES];
	unsigned open, most_open;
} me;

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Sleeps as long as it takes to have used no more than half of the time since the start. */
static void
throttle(uint64_t start_ms)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	double used = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
	double due = used / HALF - (double)(now_ms() - start_ms);
	if (due > 1)
		usleep((useconds_t)(due * 1000));
}

/* --- connections */

static void
drop(struct slot *s, bool by_peer)
{
	if (s->state == CLOSED)
		return;
	if (by_peer && s->state == ACTIVE)
		me.closed++;
	else if (by_peer)
		me.refused++;
	close(s->fd);
	tls_session_free(s->tls);
	if (s->raw) {
		rawtls_deinit(s->raw);
		free(s->raw);
	}
	free(s->text);
	memset(s, 0, sizeof(*s));
	s->since_ms = now_ms();
	me.open--;
}

static void
want(struct slot *s, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = s};

	if (events != s->events)
		epoll_ctl(me.epoll, s->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e);
	s->events = events;
}

static void
start(struct slot *s)
{
	struct sockaddr_in from = {.sin_family = AF_INET};
	int one = 1;

	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		https_die("socket", strerror(errno));
	/* Otherwise each address would soon have no ports left. */
	setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(s->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	struct linger abort = {1, 0};
	setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	from.sin_addr.s_addr =
	    htonl(INADDR_LOOPBACK | me.network << 8 | 0) + htonl(1 + me.next++ % ADDRESSES);
	me.open++;
	if (me.open > me.most_open)
		me.most_open = me.open;
	s->state = CONNECTING;
	s->since_ms = now_ms();
	me.connects++;
	if (bind(s->fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
	    (connect(s->fd, (struct sockaddr *)&me.to, sizeof(me.to)) != 0 &&
		errno != EINPROGRESS)) {
		drop(s, true);
		return;
	}
	want(s, EPOLLOUT | EPOLLIN);
}

/* --- what is said */

static void
next_text(struct slot *s)
{
	static size_t turn;
	const char *const *texts = me.attack->texts;

	free(s->text);
	s->text = NULL;
	s->len = s->at = 0;
	s->answered_ms = 0;
	if (!texts)
		return;
	size_t n = 0;
	while (texts[n])
		n++;
	if (n == 0)
		return;
	s->text = attacks_text(texts[turn++ % n], &s->len);
	me.texts++;
}

/* The beginning of a handshake, as any client sends it. */
static size_t
hello(uint8_t out[128])
{
	static const uint8_t body[] = {3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 0, 0, 2, 0xc0, 0x2b, 1,
	    0, /* extensions: */
	    0, 24, /* groups X25519, P-256 */ 0, 10, 0, 6, 0, 4, 0, 29, 0, 23, /* points */ 0, 11,
	    0, 2, 1, 0,
	    /* ECDSA with SHA-256 */ 0, 13, 0, 4, 0, 2, 4, 3};
	uint8_t head[] = {22, 3, 1, 0, sizeof(body) + 4, 1, 0, 0, sizeof(body)};

	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), body, sizeof(body));
	return sizeof(head) + sizeof(body);
}

/* Counts the status lines in what was read. */
static void
look(struct slot *s, const char *p, size_t n)
{
	static const char mark[] = "HTTP/1.1 ";

	for (size_t i = 0; i < n; i++) {
		memmove(s->line, s->line + 1, sizeof(s->line) - 2);
		s->line[14] = p[i];
		if (memcmp(s->line + 3, mark, 9) == 0) {
			int status = atoi(s->line + 12);
			if (status >= 100 && status < STATUSES)
				me.statuses[status]++;
			s->answered_ms = s->answered_ms ? s->answered_ms : now_ms();
		}
	}
}

/* Reads what there is. False: the connection is over. */
static bool
hear(struct slot *s)
{
	char data[16384];

	for (int i = 0; i < 8; i++) {
		size_t n = 0;
		if (s->tls) {
			enum tls_result r = tls_read(s->tls, data, sizeof(data), &n);
			if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT)
				return true;
			if (r != TLS_OK)
				return false;
		} else {
			ssize_t got = recv(s->fd, data, sizeof(data), 0);
			if (got < 0 && errno == EAGAIN)
				return true;
			if (got <= 0)
				return false;
			continue;
		}
		look(s, data, n);
	}
	return true;
}

/* Says the next byte, or all that fits. False: the connection is over. */
static bool
speak(struct slot *s)
{
	while (s->at < s->len) {
		size_t n = me.attack->trickle_ms ? 1 : s->len - s->at, done = 0;
		enum tls_result r = tls_write(s->tls, s->text + s->at, n, &done);
		s->at += done;
		me.bytes += done;
		if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT) {
			want(s, EPOLLIN | EPOLLOUT);
			return true;
		}
		if (r != TLS_OK)
			return false;
		if (me.attack->trickle_ms) {
			s->due_ms = now_ms() + me.attack->trickle_ms;
			break;
		}
		if (s->at == s->len && me.attack->after == AFTER_REPEAT) {
			next_text(s);
			want(s, EPOLLIN | EPOLLOUT);
			return true;
		}
	}
	want(s, EPOLLIN);
	return true;
}

static bool
send_records(struct slot *s)
{
	static const unsigned char warning[2] = {1, 90};

	for (int i = 0; i < 50; i++) {
		int rc = i & 1 ? rawtls_hello(s->raw)
			       : rawtls_record(s->raw, MBEDTLS_SSL_MSG_ALERT, warning, 2);
		if (rc != 0)
			return rc == MBEDTLS_ERR_SSL_WANT_WRITE;
		me.records++;
	}
	return true;
}

/* --- events */

/* The TCP connection is there. */
static bool
connected(struct slot *s)
{
	uint8_t data[128];
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error)
		return false;
	switch (me.attack->layer) {
	case LAYER_TCP:
	case LAYER_HELLO:
		s->state = ACTIVE;
		want(s, EPOLLIN);
		if (me.attack->layer == LAYER_HELLO &&
		    send(s->fd, data, hello(data), MSG_NOSIGNAL) > 0)
			me.handshakes++;
		return true;
	case LAYER_RECORDS:
		s->raw = calloc(1, sizeof(*s->raw));
		s->state = HANDSHAKE;
		return s->raw && rawtls_init(s->raw, s->fd);
	case LAYER_TLS:
	case LAYER_DEVICE:
		s->state = HANDSHAKE;
		return tls_session_new(&s->tls, me.tls, s->fd) == ERR_OK;
	}
	return false;
}

static bool
shake(struct slot *s)
{
	if (s->raw) {
		int rc = rawtls_handshake(s->raw);
		if (rc == MBEDTLS_ERR_SSL_WANT_READ || rc == MBEDTLS_ERR_SSL_WANT_WRITE) {
			want(s, rc == MBEDTLS_ERR_SSL_WANT_WRITE ? EPOLLOUT : EPOLLIN);
			return true;
		}
		if (rc != 0)
			return false;
	} else {
		enum tls_result r = tls_handshake(s->tls);
		if (r == TLS_AGAIN_IN || r == TLS_AGAIN_OUT) {
			want(s, r == TLS_AGAIN_OUT ? EPOLLOUT : EPOLLIN);
			return true;
		}
		if (r != TLS_OK)
			return false;
	}
	me.handshakes++;
	s->state = ACTIVE;
	next_text(s);
	want(s, EPOLLIN | EPOLLOUT);
	return true;
}

static bool
act(struct slot *s, uint32_t events)
{
	if (s->raw)
		return send_records(s) && hear(s);
	if (!me.attack->deaf && events & EPOLLIN && !hear(s))
		return false;
	if (me.attack->deaf && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		return false;
	if (me.attack->layer == LAYER_HELLO)
		return hear(s) && me.attack->after != AFTER_CHURN;
	if (s->tls && s->text && !me.attack->trickle_ms)
		return speak(s);
	want(s, EPOLLIN);
	return true;
}

static void
on_event(struct slot *s, uint32_t events)
{
	bool alive = true;

	if (s->state == CONNECTING && events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		alive = connected(s);
	if (alive && s->state == HANDSHAKE)
		alive = shake(s);
	else if (alive && s->state == ACTIVE)
		alive = act(s, events);
	if (!alive)
		drop(s, me.attack->layer != LAYER_HELLO || me.attack->after != AFTER_CHURN);
	else if (s->state == ACTIVE && me.attack->after == AFTER_CHURN &&
	    me.attack->layer == LAYER_TLS)
		drop(s, false);
}

/* What time brings: new connections, the next byte, the end of waiting. */
static void
tend(struct slot *s, uint64_t now, unsigned *budget)
{
	if (s->state == CLOSED && *budget > 0) {
		--*budget;
		start(s);
	}
	if (s->state == ACTIVE && me.attack->trickle_ms && s->at < s->len && now >= s->due_ms &&
	    !speak(s))
		drop(s, true);
	if (s->state == ACTIVE && me.attack->after == AFTER_ANSWER && s->answered_ms &&
	    now > s->answered_ms + AFTERMATH_MS)
		drop(s, false);
	/* Not even an answer: the next text. */
	if (s->state == ACTIVE && me.attack->after == AFTER_ANSWER && now > s->since_ms + 3000)
		drop(s, false);
}

static void
run(double seconds)
{
	struct epoll_event events[256];
	uint64_t start_ms = now_ms(), tended = 0, end = start_ms + (uint64_t)(seconds * 1000);

	for (uint64_t now = start_ms; now < end; now = now_ms()) {
		int n = epoll_wait(me.epoll, events, 256, 5);
		/* As finely as burn: where nobody gives way the devices wait as long as it works at once. */
		for (int i = 0; i < n; i++) {
			throttle(start_ms);
			on_event(events[i].data.ptr, events[i].events);
		}
		if (now < tended + 20)
			continue;
		tended = now;
		unsigned budget = 128;
		for (unsigned i = 0; i < me.attack->slots; i++) {
			unsigned before = budget;
			tend(&me.slots[i], now, &budget);
			if (budget != before)
				throttle(start_ms);
		}
	}
}

/* What the attacker's own work does to others on this machine. */
static void
burn(double seconds)
{
	uint64_t start_ms = now_ms(), end = start_ms + (uint64_t)(seconds * 1000);

	for (uint64_t now = start_ms; now < end; now = now_ms()) {
		throttle(start_ms);
		for (uint64_t until = now_ms() + 1; now_ms() < until;)
			;
	}
}

static int
report(double seconds)
{
	uint64_t good = me.statuses[200] + me.statuses[201] + me.statuses[206];

	printf("%.0f connections/s (%u at once), %.0f handshakes/s", (double)me.connects / seconds,
	    me.most_open, (double)me.handshakes / seconds);
	if (me.texts)
		printf(", %.0f texts/s, %.0f KiB/s", (double)me.texts / seconds,
		    (double)me.bytes / seconds / 1024);
	if (me.records)
		printf(", %.0f records/s", (double)me.records / seconds);
	printf(" | closed %llu, refused %llu", (unsigned long long)me.closed,
	    (unsigned long long)me.refused);
	for (int i = 0; i < STATUSES; i++)
		if (me.statuses[i])
			printf(", %llu x %d", (unsigned long long)me.statuses[i], i);
	printf("\n");
	return me.attack->pure && good ? 1 : 0;
}

int
main(int argc, char **argv)
{
	struct why why = {""};

	if (argc == 2 && strcmp(argv[1], "list") == 0) {
		attacks_list();
		return 0;
	}
	(void)!setpriority(PRIO_PROCESS, 0, 19);
	if (argc == 3 && strcmp(argv[1], "burn") == 0) {
		burn(atof(argv[2]));
		return 0;
	}
	me.attack = argc == 6 ? attacks_find(argv[1]) : NULL;
	if (!me.attack) {
		fprintf(stderr,
		    "usage: attacker NAME HOME PORT SECONDS NETWORK, attacker burn SECONDS, or "
		    "attacker list\n");
		return 2;
	}
	https_load(&me.home, argv[2]);
	(void)attacks_token(argv[2]);
	bool device = me.attack->layer == LAYER_DEVICE;
	struct tls_config config = {.ca = &me.home.ca,
	    .cert = device ? &me.home.cert : NULL,
	    .key = device ? me.home.key : NULL,
	    .peer_name = "localhost",
	    .cache_entries = 0};
	if (tls_context_new(&me.tls, &config, &why) != ERR_OK)
		https_die("tls", why.text);
	me.to = (struct sockaddr_in){.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)atoi(argv[3])),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	me.network = (unsigned)atoi(argv[5]) & 255;
	me.epoll = epoll_create1(EPOLL_CLOEXEC);
	me.slots = calloc(SLOTS_MAX, sizeof(*me.slots));
	if (me.epoll < 0 || !me.slots)
		return 2;
	srand(me.network);
	run(atof(argv[4]));
	int rc = report(atof(argv[4]));
	for (unsigned i = 0; i < SLOTS_MAX; i++)
		drop(&me.slots[i], false);
	return rc;
}
