/*
 * A bad network on loopback: passes TCP connections on to another port, late, slowly, in part or with wrong bytes. One process
 * serves many devices, a link (a port of its own) each.
 *
 *   relay [-s SEED] [-n LINKS] [-l ADDRESS:PORT] [-c FIFO] HOST:PORT [KEY=VALUE...]
 *
 * Prints the links' ports in one line. Port 0 (the default) takes free ones; otherwise link n has the n-th port from PORT on.
 * Every random number comes from the seed, which is printed to standard error. SIGTERM prints what was done and ends with 0.
 * A line written to the FIFO changes a link (its number from 1 on) or "all" of them: "3 cut=500-900 end=rst", "all now=1".
 * A line "stats FILE" writes the totals to a file. What is set later holds for open connections, too, except cut and cutbytes.
 *
 *   to=HOST:PORT    where connections go from now on
 *   delay=MS        each byte is that late, in each direction
 *   rate=BYTES      a second, in each direction; 0 (the default): no limit
 *   cut=MIN-MAX     each connection ends after so many milliseconds, chosen at random; 0: never
 *   cutbytes=N      and after N to 2N bytes, both directions together; 0: never
 *   now=1           ends all open connections
 *   end=HOW         how connections end: rst (default); fin; up or down: that direction alone, with a FIN; freeze: nothing more
 *                   passes and nobody is told, as when a gateway forgets a connection; any: one of those, at random
 *   corrupt=N       one byte of N on the mean is changed
 *   repeat=N        one piece of N bytes on the mean comes twice
 *   stall=1         new connections are accepted and nothing more
 *   drop=MS         new connections are reset for so long from now on
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "num.h"
#include "prng.h"
#include "relay_flow.h"

#define LINKS_MAX 128
#define CONNS_MAX 512
#define SOCKET_BYTES 16384 /* little, so that a slow link is felt at its other end */

static const char *const ending_names[] = {"rst", "fin", "up", "down", "freeze", "any"};

struct link {
	struct settings set;
	struct sockaddr_storage to;
	socklen_t to_len;
	int listener;
	uint64_t drop_until;
};

struct conn {
	struct link *link; /* NULL: free */
	struct flow flow[2]; /* up, down */
	uint64_t cut_at, cut_bytes;
	bool frozen;
};

static struct link links[LINKS_MAX];
static size_t link_count = 1;
static struct conn conns[CONNS_MAX];
static volatile sig_atomic_t stopped;

static _Noreturn void
die(const char *what, const char *text)
{
	fprintf(stderr, "relay: %s %s: %s\n", what, text, strerror(errno));
	exit(2);
}

/* --- settings */

static bool
resolve(const char *text, struct sockaddr_storage *to, socklen_t *len)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	char host[128];
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (!colon || n >= sizeof(host))
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	char *bare = host;
	if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		bare++;
	}
	if (getaddrinfo(bare, colon + 1, &hints, &list) != 0)
		return false;
	memcpy(to, list->ai_addr, list->ai_addrlen);
	*len = list->ai_addrlen;
	freeaddrinfo(list);
	return true;
}

static bool
set_cut(struct settings *s, const char *value)
{
	char low[32];
	const char *dash = strchr(value, '-');
	size_t n = dash ? (size_t)(dash - value) : strlen(value);

	if (n >= sizeof(low))
		return false;
	memcpy(low, value, n);
	low[n] = '\0';
	return num_u64(low, 1u << 30, &s->cut_min) &&
	    num_u64(dash ? dash + 1 : low, 1u << 30, &s->cut_max) && s->cut_min <= s->cut_max;
}

static bool
set_end(struct settings *s, const char *value)
{
	for (size_t i = 0; i <= END_ANY; i++) {
		if (strcmp(value, ending_names[i]) != 0)
			continue;
		s->end = (enum ending)i;
		return true;
	}
	return false;
}

static void end_conn(struct conn *c, enum ending how);

static bool
set_now(struct link *l, const char *key, uint64_t n)
{
	if (strcmp(key, "drop") == 0) {
		l->drop_until = now_us() + n * 1000;
		return true;
	}
	if (strcmp(key, "now") != 0)
		return false;
	for (size_t i = 0; i < CONNS_MAX; i++)
		if (conns[i].link == l && !conns[i].frozen)
			end_conn(&conns[i], l->set.end);
	return true;
}

static bool
set(struct link *l, const char *word)
{
	static const struct {
		const char *key;
		size_t at;
	} numbers[] = {{"delay", offsetof(struct settings, delay)},
	    {"rate", offsetof(struct settings, rate)},
	    {"cutbytes", offsetof(struct settings, cutbytes)},
	    {"corrupt", offsetof(struct settings, corrupt)},
	    {"repeat", offsetof(struct settings, repeat)},
	    {"stall", offsetof(struct settings, stall)}};
	const char *value = strchr(word, '=');
	char key[16];
	uint64_t n;

	if (!value || (size_t)(value - word) >= sizeof(key))
		return false;
	memcpy(key, word, (size_t)(value - word));
	key[value++ - word] = '\0';
	if (strcmp(key, "to") == 0)
		return resolve(value, &l->to, &l->to_len);
	if (strcmp(key, "cut") == 0)
		return set_cut(&l->set, value);
	if (strcmp(key, "end") == 0)
		return set_end(&l->set, value);
	if (!num_u64(value, UINT32_MAX, &n))
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (strcmp(key, numbers[i].key) != 0)
			continue;
		memcpy((char *)&l->set + numbers[i].at, &n, sizeof(n));
		return true;
	}
	return set_now(l, key, n);
}

static void
print_counts(FILE *f)
{
	fprintf(f,
	    "connections=%" PRIu64 " dropped=%" PRIu64 " stalled=%" PRIu64 " rst=%" PRIu64
	    " fin=%" PRIu64 " up=%" PRIu64 " down=%" PRIu64 " freeze=%" PRIu64 " bytes_up=%" PRIu64
	    " bytes_down=%" PRIu64 " corrupted=%" PRIu64 " repeated=%" PRIu64 "\n",
	    counts.connections, counts.dropped, counts.stalled, counts.ended[END_RST],
	    counts.ended[END_FIN], counts.ended[END_UP], counts.ended[END_DOWN],
	    counts.ended[END_FREEZE], counts.bytes_up, counts.bytes_down, counts.corrupted,
	    counts.repeated);
}

/* The file appears whole. */
static void
write_counts(const char *path)
{
	char temporary[512];
	FILE *f;

	snprintf(temporary, sizeof(temporary), "%.500s.new", path);
	if (!(f = fopen(temporary, "w")))
		die("write", path);
	print_counts(f);
	if (fclose(f) != 0 || rename(temporary, path) != 0)
		die("write", path);
}

static void
obey(char *line)
{
	char *rest = line, *who = strsep(&rest, " "), *word;
	uint64_t number = 0;

	if (strcmp(who, "stats") == 0 && rest) {
		write_counts(rest);
		return;
	}
	bool all = strcmp(who, "all") == 0;
	if (!all && (!num_u64(who, link_count, &number) || number == 0)) {
		fprintf(stderr, "relay: no such link: %s\n", who);
		return;
	}
	while ((word = strsep(&rest, " ")))
		for (size_t i = 0; i < link_count; i++)
			if ((all || i + 1 == number) && !set(&links[i], word))
				fprintf(stderr, "relay: bad setting: %s\n", word);
}

/* Lines of up to PIPE_BUF bytes come whole. */
static void
read_control(int fd)
{
	static char text[8192];
	static size_t len;
	ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);
	char *end;

	if (n <= 0)
		return;
	len += (size_t)n;
	text[len] = '\0';
	char *line = text;
	for (; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		obey(line);
	}
	len = strlen(line) < sizeof(text) - 1 ? strlen(line) : 0;
	memmove(text, line, len);
}

/* --- connections */

static void
close_conn(struct conn *c, bool reset)
{
	const struct linger now = {.l_onoff = 1};

	for (int i = 0; i < 2; i++) {
		int fd = c->flow[i].in;
		if (fd < 0)
			continue;
		if (reset)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(fd);
	}
	c->link = NULL;
}

static void
end_conn(struct conn *c, enum ending how)
{
	if (how == END_ANY)
		how = (enum ending)prng_below(&rng, END_ANY);
	counts.ended[how]++;
	c->cut_at = c->cut_bytes = NEVER;
	if (how == END_RST || how == END_FIN) {
		close_conn(c, how == END_RST);
	} else if (how == END_FREEZE) {
		c->frozen = true;
	} else {
		struct flow *f = &c->flow[how == END_DOWN];
		f->void_ = f->ended = f->told = true;
		f->len = f->piece_count = 0;
		shutdown(f->out, SHUT_WR);
	}
}

static struct conn *
free_conn(void)
{
	for (size_t i = 0; i < CONNS_MAX; i++)
		if (!conns[i].link)
			return &conns[i];
	/* Of those that nobody hears of any more one can go. */
	for (size_t i = 0; i < CONNS_MAX; i++) {
		if (!conns[i].frozen)
			continue;
		close_conn(&conns[i], true);
		return &conns[i];
	}
	return NULL;
}

static int
go_on_to(const struct link *l)
{
	const int size = SOCKET_BYTES, yes = 1;
	int fd = socket(l->to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(fd, (const struct sockaddr *)&l->to, l->to_len) == 0 || errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

static void
open_conn(struct link *l, int fd)
{
	const struct settings *s = &l->set;
	const int yes = 1;
	struct conn *c = free_conn();
	bool drop = now_us() < l->drop_until;
	int on = drop || s->stall ? -1 : go_on_to(l);

	counts.connections++;
	counts.dropped += drop;
	counts.stalled += !drop && s->stall;
	if (!c || drop || (on < 0 && !s->stall)) {
		struct conn gone = {.flow = {{.in = fd}, {.in = on}}};
		close_conn(&gone, true);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	c->link = l;
	c->frozen = s->stall;
	c->cut_at = NEVER;
	if (s->cut_max)
		c->cut_at =
		    now_us() + (s->cut_min + prng_below(&rng, s->cut_max - s->cut_min + 1)) * 1000;
	c->cut_bytes = s->cutbytes ? s->cutbytes + prng_below(&rng, s->cutbytes + 1) : NEVER;
	start_flow(&c->flow[0], s, fd, on);
	start_flow(&c->flow[1], s, on, fd);
}

/* Moves what can be moved now; closes the connection when it is over. */
static void
drive(struct conn *c, bool in_up, bool in_down)
{
	const struct settings *s = &c->link->set;
	struct flow *up = &c->flow[0], *down = &c->flow[1];

	if (now_us() >= c->cut_at || up->seen + down->seen >= c->cut_bytes) {
		end_conn(c, s->end);
		return;
	}
	bool alive = (!in_up || pull(up, s)) && (!in_down || pull(down, s)) &&
	    push(up, s, &counts.bytes_up) && push(down, s, &counts.bytes_down);
	if (!alive || (up->told && down->told))
		close_conn(c, !alive);
}

/* --- the loop */

static struct pollfd
watch(bool on, const struct flow *in, const struct flow *out)
{
	int events = in->void_ || (!in->ended && has_room(in)) ? POLLIN : 0;

	if (out->blocked)
		events |= POLLOUT;
	/* A socket from which nothing is wanted would report its end again and again. */
	return (struct pollfd){.fd = on && events ? in->in : -1, .events = (short)events};
}

static int
wait_ms(void)
{
	uint64_t next = NEVER, now = now_us();

	for (size_t i = 0; i < CONNS_MAX; i++) {
		const struct conn *c = &conns[i];
		if (!c->link || c->frozen)
			continue;
		next = c->cut_at < next ? c->cut_at : next;
		for (int k = 0; k < 2; k++)
			if (!c->flow[k].blocked && due_at(&c->flow[k]) < next)
				next = due_at(&c->flow[k]);
	}
	if (next == NEVER)
		return 10000;
	return next <= now ? 0
			   : (int)((next - now) / 1000 > 9999 ? 10000 : (next - now) / 1000 + 1);
}

static void
accept_all(struct link *l)
{
	int fd;

	while ((fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		open_conn(l, fd);
}

static void
turn(int control)
{
	static struct pollfd p[1 + LINKS_MAX + 2 * CONNS_MAX];
	const short hurt = POLLHUP | POLLERR;
	size_t n = 0;

	p[n++] = (struct pollfd){.fd = control, .events = POLLIN};
	for (size_t i = 0; i < link_count; i++)
		p[n++] = (struct pollfd){.fd = links[i].listener, .events = POLLIN};
	for (size_t i = 0; i < CONNS_MAX; i++) {
		const struct flow *up = &conns[i].flow[0], *down = &conns[i].flow[1];
		bool on = conns[i].link && !conns[i].frozen;
		p[n++] = watch(on, up, down);
		p[n++] = watch(on, down, up);
	}
	if (poll(p, n, wait_ms()) < 0)
		return;
	const struct pollfd *q = p + 1 + link_count;
	for (size_t i = 0; i < CONNS_MAX; i++, q += 2)
		if (conns[i].link && !conns[i].frozen)
			drive(&conns[i], q[0].revents & (POLLIN | hurt),
			    q[1].revents & (POLLIN | hurt));
	for (size_t i = 0; i < link_count; i++)
		if (p[1 + i].revents)
			accept_all(&links[i]);
	if (p[0].revents)
		read_control(control);
}

static void
on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static void
listen_on(struct link *l, const char *address, uint64_t number)
{
	struct sockaddr_storage at;
	socklen_t len;
	const int yes = 1, size = SOCKET_BYTES;

	if (!resolve(address, &at, &len))
		die("address", address);
	/* The port lies at the same place in both families. */
	struct sockaddr_in *in = (struct sockaddr_in *)&at;
	if (in->sin_port)
		in->sin_port = htons((uint16_t)(ntohs(in->sin_port) + number));
	l->listener = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(l->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	setsockopt(l->listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(l->listener, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (bind(l->listener, (struct sockaddr *)&at, len) != 0 || listen(l->listener, 128) != 0 ||
	    getsockname(l->listener, (struct sockaddr *)&at, &len) != 0)
		die("listen on", address);
	printf("%s%u", number ? " " : "", ntohs(in->sin_port));
}

static int
open_control(const char *path)
{
	if (!path)
		return -1;
	if (mkfifo(path, 0600) != 0 && errno != EEXIST)
		die("make", path);
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		die("open", path);
	return fd;
}

static _Noreturn void
usage(void)
{
	fprintf(stderr,
	    "usage: relay [-s SEED] [-n LINKS] [-l ADDRESS:PORT] [-c FIFO] HOST:PORT "
	    "[KEY=VALUE...]\n");
	exit(2);
}

static void
set_links(const char *address, int argc, char **argv)
{
	for (size_t i = 0; i < link_count; i++) {
		struct link *l = &links[i];
		if (!resolve(argv[0], &l->to, &l->to_len))
			usage();
		for (int k = 1; k < argc; k++)
			if (!set(l, argv[k]))
				usage();
		listen_on(l, address, i);
	}
	printf("\n");
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	const struct sigaction act = {.sa_handler = on_signal};
	const char *address = "127.0.0.1:0", *fifo = NULL;
	uint64_t seed = (uint64_t)time(NULL), n = 1;
	int option;

	while ((option = getopt(argc, argv, "s:n:l:c:")) != -1) {
		bool ok = option != '?';
		if (option == 's')
			ok = num_u64(optarg, UINT64_MAX, &seed);
		else if (option == 'n')
			ok = num_u64(optarg, LINKS_MAX, &n) && n > 0;
		else if (option == 'l')
			address = optarg;
		else
			fifo = optarg;
		if (!ok)
			usage();
	}
	if (optind == argc)
		usage();
	link_count = (size_t)n;
	fprintf(stderr, "relay: seed %" PRIu64 "\n", seed);
	prng_seed(&rng, seed);
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	int control = open_control(fifo);
	set_links(address, argc - optind, argv + optind);
	while (!stopped)
		turn(control);
	print_counts(stdout);
	return 0;
}
