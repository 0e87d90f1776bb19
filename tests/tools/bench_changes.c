/*
 * Load for `make bench BENCH=changes` and tests/e2e/252-changes.sh, told by lines on standard input what to do:
 *
 *   BENCH_CA=ca.pem bench_changes devices HOST PORT TOKEN_FILE PARKED HANDS ELEMENTS
 *     joins devices, of which PARKED ask for a task that there is not ("parked") and HANDS have one of job `bench`, and says "parked";
 *     "change N MS": so many of the hands send their delta, one after another, MS apart; says "changed N answered A": how many of the
 *     parked requests have been answered since.
 *   BENCH_CA=ca.pem bench_changes readers HOST PORT TOKENS_FILE READERS OF_ONE FLOOR_MS
 *     READERS wait for changes of jobs, OF_ONE with each token of the file (one a line), and ask for GET /v1/jobs when told, at most once
 *     in FLOOR_MS; "on" and "off" (says so once the last answer came); "tell": says "asked N of N refused N rounds N median S most S":
 *     requests for /v1/jobs by so many readers, 429s, and the seconds from the opening of a round until a reader knows of it; anew from
 *     zero then.
 */
#include "load.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/epoll.h>

#define PARKED_MAX 20000
#define READERS_MAX 256
#define THREADS 64
#define LINE_MAX 200
#define ANSWER_ROOM ((size_t)1 << 20)
#define TIMES_MAX 200000
#define BATCH 256
#define TELLING_MS 20

static int events;

static void
watch(struct device *d, void *whose)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = whose};

	if (epoll_ctl(events, EPOLL_CTL_ADD, d->fd, &e))
		die("epoll_ctl");
}

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void
say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

/* --- devices */

static struct device *devices;
static struct task *tasks; /* of the hands, which are the last devices */
static unsigned parked, hands, answers, spent;

struct worker {
	pthread_t id;
	unsigned first;
	void (*work)(struct device *d);
};

static void *
work_on_some(void *arg)
{
	const struct worker *w = arg;

	for (unsigned i = w->first; i < parked + hands; i += THREADS)
		w->work(&devices[i]);
	return NULL;
}

static void
with_all(void (*work)(struct device *d))
{
	struct worker workers[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].first = i;
		workers[i].work = work;
		if (pthread_create(&workers[i].id, NULL, work_on_some, &workers[i]))
			die("cannot start a thread");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].id, NULL);
}

static void
connect_known(struct device *d)
{
	connect_device(d, true);
}

static void
park_all(void)
{
	static const char offer[] =
	    "{\"agent\":\"bench\",\"protocol\":1,\"data\":[{\"name\":\"elsewhere\",\"examples\":"
	    "1000}],\"trainers\":[\"noop\"],\"codecs\":[\"f32\"],\"wait\":50}";
	char head[512];

	int n = snprintf(head, sizeof(head),
	    "POST /v1/tasks HTTP/1.1\r\nHost: bench\r\nContent-Length: %zu\r\n\r\n%s",
	    sizeof(offer) - 1, offer);
	for (unsigned i = 0; i < parked; i++) {
		send_all(&devices[i], head, (size_t)n);
		watch(&devices[i], &devices[i]);
	}
}

/* What the parked have been answered; nothing should come. */
static void
look_at_parked(int ms)
{
	struct epoll_event got[BATCH];
	char text[HEAD_MAX];

	int n = epoll_wait(events, got, BATCH, ms);
	for (int i = 0; i < n; i++) {
		struct device *d = got[i].data.ptr;
		size_t len = 0;
		enum tls_result r = tls_read(d->session, text, sizeof(text), &len);
		if (r == TLS_AGAIN_IN)
			continue;
		if (r != TLS_OK)
			die("a parked connection was closed");
		answers++;
	}
}

static void
change(unsigned count, unsigned ms)
{
	static char answer[ANSWER_ROOM];
	double at = now();

	answers = 0;
	for (unsigned i = 0; i < count; i++, at += ms / 1000.0) {
		if (spent == hands)
			die("no task is left");
		while (now() < at)
			look_at_parked((int)((at - now()) * 1000) + 1);
		report(&devices[parked + spent], &tasks[spent], answer, sizeof(answer));
		spent++;
	}
	look_at_parked(0);
	say("changed %u answered %u", count, answers);
}

static int
play_devices(char **argv)
{
	static char answer[ANSWER_ROOM];
	char line[LINE_MAX];
	unsigned count, ms;

	load_begin(argv[2], argv[3], argv[4]);
	parked = (unsigned)atoi(argv[5]);
	hands = (unsigned)atoi(argv[6]);
	if (parked < 1 || parked > PARKED_MAX || hands < 1 || hands > PARKED_MAX)
		die("arguments out of range");
	make_payload(strtoull(argv[7], NULL, 10));
	devices = calloc(parked + hands, sizeof(*devices));
	tasks = calloc(hands, sizeof(*tasks));
	if (!devices || !tasks)
		die("no memory");
	with_all(join_device);
	with_all(connect_known);
	for (unsigned i = 0; i < hands; i++)
		ask(&devices[parked + i], &tasks[i], answer, sizeof(answer));
	park_all();
	say("parked");
	while (fgets(line, sizeof(line), stdin))
		if (sscanf(line, "change %u %u", &count, &ms) == 2)
			change(count, ms);
	return 0;
}

/* --- readers */

enum reader_state { READER_IDLE, READER_WAITS, READER_ASKS, READER_RESTS };

struct reader {
	struct device at;
	char token[TOKEN_TEXT_MAX];
	enum reader_state state;
	uint64_t change, round;
	double rests_until;
	char answer[65536];
	size_t have;
};

static struct reader *readers;
static unsigned reader_count, busy, refused, asked;
static double rest_s, times[TIMES_MAX];
static unsigned time_count, round_count;
static uint64_t newest;
static bool on;

static void
request(struct reader *r, enum reader_state to, const char *path)
{
	char head[512];

	int n = snprintf(head, sizeof(head),
	    "GET %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n", path, r->token);
	send_all(&r->at, head, (size_t)n);
	busy += r->state == READER_IDLE || r->state == READER_RESTS;
	r->state = to;
	r->have = 0;
}

static void
wait_for_change(struct reader *r)
{
	char path[96];

	snprintf(
	    path, sizeof(path), "/v1/changes?after=%llu&wait=50", (unsigned long long)r->change);
	request(r, READER_WAITS, path);
}

/* Is the answer whole? *body: its body. */
static bool
is_whole(struct reader *r, const char **body)
{
	r->answer[r->have] = '\0';
	const char *end = strstr(r->answer, "\r\n\r\n");
	if (!end)
		return false;
	*body = end + 4;
	const char *field = strcasestr(r->answer, "\r\ncontent-length:");
	if (!field || field > end)
		return strstr(*body, "\r\n0\r\n\r\n") != NULL;
	return r->have - (size_t)(*body - r->answer) >= strtoull(field + 17, NULL, 10);
}

static double
member(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtod(at + strlen(name), NULL) : NAN;
}

/* Of the only job. */
static void
note_jobs(struct reader *r, const char *body)
{
	struct timespec t;

	double round = member(body, "\"round\":"), opened = member(body, "\"opened_at\":");
	asked++;
	if (isnan(round) || isnan(opened) || (uint64_t)round == r->round)
		return;
	clock_gettime(CLOCK_REALTIME, &t);
	/* The first round it knows of has begun at any time. */
	if (r->round > 0 && time_count < TIMES_MAX)
		times[time_count++] = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 - opened;
	r->round = (uint64_t)round;
	round_count += r->round > newest;
	newest = r->round > newest ? r->round : newest;
}

static void
take(struct reader *r, const char *body)
{
	int status = atoi(r->answer + 9);

	if (status == 429)
		refused++;
	else if (status != 200)
		die(body);
	if (r->state == READER_WAITS && status == 200) {
		r->change = strtoull(strstr(body, "\"change\":") + 9, NULL, 10);
		request(r, READER_ASKS, "/v1/jobs");
		return;
	}
	if (r->state == READER_ASKS && status == 200)
		note_jobs(r, body);
	r->state = READER_RESTS;
	r->rests_until = now() + (status == 429 ? 2 : rest_s);
	busy--;
}

static void
on_answer(struct reader *r)
{
	enum tls_result t;
	const char *body;
	size_t len = 0;

	while ((t = tls_read(r->at.session, r->answer + r->have, sizeof(r->answer) - 1 - r->have,
		    &len)) == TLS_OK) {
		r->have += len;
		if (is_whole(r, &body))
			take(r, body);
		else if (r->have + 1 >= sizeof(r->answer))
			die("an answer is too large");
	}
	if (t != TLS_AGAIN_IN)
		die("a reader's connection was closed");
}

static void
step_readers(int ms)
{
	struct epoll_event got[BATCH];

	int n = epoll_wait(events, got, BATCH, ms);
	for (int i = 0; i < n; i++)
		on_answer(got[i].data.ptr);
	for (unsigned i = 0; on && i < reader_count; i++)
		if (readers[i].state == READER_IDLE ||
		    (readers[i].state == READER_RESTS && readers[i].rests_until <= now()))
			wait_for_change(&readers[i]);
}

static int
by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
tell(void)
{
	qsort(times, time_count, sizeof(*times), by_size);
	say("asked %u of %u refused %u rounds %u median %.3f most %.3f", asked, reader_count,
	    refused, round_count, time_count ? times[time_count / 2] : 0,
	    time_count ? times[time_count - 1] : 0);
	asked = refused = time_count = round_count = 0;
}

static void
obey(const char *line)
{
	if (strncmp(line, "tell", 4) == 0)
		tell();
	on = strncmp(line, "on", 2) == 0 || (on && strncmp(line, "off", 3) != 0);
	if (strncmp(line, "on", 2) == 0)
		say("on");
	if (strncmp(line, "off", 3) != 0)
		return;
	while (busy > 0)
		step_readers(TELLING_MS);
	/* What it knows by then is old when it is told again. */
	for (unsigned i = 0; i < reader_count; i++)
		readers[i].round = 0;
	say("off");
}

static void
connect_readers(const char *tokens, unsigned of_one)
{
	FILE *f = fopen(tokens, "r");
	char line[TOKEN_TEXT_MAX + 2] = "";

	readers = calloc(reader_count, sizeof(*readers));
	if (!f || !readers)
		die("cannot read the tokens");
	for (unsigned i = 0; i < reader_count; i++) {
		struct reader *r = &readers[i];
		if (i % of_one == 0 && !fgets(line, sizeof(line), f))
			die("too few tokens");
		line[strcspn(line, "\n")] = '\0';
		snprintf(r->token, sizeof(r->token), "%s", line);
		connect_device(&r->at, false);
		watch(&r->at, r);
	}
	fclose(f);
}

static int
play_readers(char **argv)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	char line[LINE_MAX];

	load_begin(argv[2], argv[3], argv[4]);
	reader_count = (unsigned)atoi(argv[5]);
	unsigned of_one = (unsigned)atoi(argv[6]);
	rest_s = atoi(argv[7]) / 1000.0;
	if (reader_count < 1 || reader_count > READERS_MAX || of_one < 1)
		die("arguments out of range");
	connect_readers(argv[4], of_one);
	say("connected");
	/* One line at a time: none waits in the buffer of stdio. */
	setvbuf(stdin, NULL, _IONBF, 0);
	for (;;) {
		step_readers(TELLING_MS);
		if (poll(&in, 1, 0) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		obey(line);
	}
}

int
main(int argc, char **argv)
{
	events = epoll_create1(EPOLL_CLOEXEC);
	if (argc == 8 && strcmp(argv[1], "devices") == 0)
		return play_devices(argv);
	if (argc == 8 && strcmp(argv[1], "readers") == 0)
		return play_readers(argv);
	fprintf(stderr,
	    "usage: bench_changes devices HOST PORT TOKEN_FILE PARKED HANDS ELEMENTS\n"
	    "       bench_changes readers HOST PORT TOKENS_FILE READERS OF_ONE FLOOR_MS\n");
	return 2;
}
