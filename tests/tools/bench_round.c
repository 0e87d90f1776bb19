/*
 * Load for `make bench`: one process plays many devices that train nothing. They join, keep their connections, fetch and
 * verify every model, hash and sign every delta for real, and write nothing to disk.
 *
 *   BENCH_CA=ca.pem bench_round HOST PORT TOKEN_FILE DEVICES ELEMENTS ROUNDS DAEMON_PID
 *
 * prints "seconds S cpu C bytes_in B bytes_out B hwm_kib K rounds N" per round of the timed part: the first round, in which
 * connections are made, is not counted.
 */
#include "load.h"

#define THREADS_MAX 16
#define DEVICES_MAX 1000

static struct device devices[DEVICES_MAX];
static unsigned device_count, rounds;

/* --- measuring the daemon */

static double
cpu_seconds(const char *pid)
{
	char path[64];
	char text[1024] = "";
	unsigned long user = 0, system = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	FILE *f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f))
		die("cannot read the daemon's /proc/PID/stat");
	fclose(f);
	const char *p = strrchr(text, ')');
	if (!p ||
	    sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) !=
		2)
		die("cannot parse /proc/PID/stat");
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static long
peak_kib(const char *pid)
{
	char path[64], line[256];
	long kib = 0;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmHWM: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

/* --- threads: each plays its devices one after another, round by round */

struct worker {
	pthread_t id;
	unsigned first, step, from_round, to_round;
	char *answer;
	size_t room;
};

static void *
play(void *arg)
{
	struct worker *w = arg;

	for (unsigned r = w->from_round; r <= w->to_round; r++)
		for (unsigned i = w->first; i < device_count; i += w->step) {
			struct task t;
			ask(&devices[i], &t, w->answer, w->room);
			fetch(&devices[i], &t, w->answer, w->room);
			report(&devices[i], &t, w->answer, w->room);
			messages_task_deinit(&t);
		}
	return NULL;
}

static void
play_rounds(struct worker *workers, unsigned threads, unsigned from, unsigned to)
{
	for (unsigned i = 0; i < threads; i++) {
		workers[i].first = i;
		workers[i].step = threads;
		workers[i].from_round = from;
		workers[i].to_round = to;
		if (pthread_create(&workers[i].id, NULL, play, &workers[i]) != 0)
			die("cannot start a thread");
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].id, NULL);
}

int
main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];

	if (argc != 8) {
		fprintf(stderr,
		    "usage: bench_round HOST PORT TOKEN_FILE DEVICES ELEMENTS ROUNDS PID\n");
		return 2;
	}
	load_begin(argv[1], argv[2], argv[3]);
	device_count = (unsigned)atoi(argv[4]);
	uint64_t elements = strtoull(argv[5], NULL, 10);
	rounds = (unsigned)atoi(argv[6]);
	if (device_count < 1 || device_count > DEVICES_MAX || elements == 0 || rounds < 1)
		die("arguments out of range");
	make_payload(elements);
	unsigned threads = device_count < THREADS_MAX ? device_count : THREADS_MAX;
	for (unsigned i = 0; i < threads; i++) {
		workers[i].room = payload_bytes + (1u << 20);
		workers[i].answer = malloc(workers[i].room);
	}
	for (unsigned i = 0; i < device_count; i++) {
		join_device(&devices[i]);
		connect_device(&devices[i], true);
	}
	play_rounds(workers, threads, 1, 1);
	atomic_store(&bytes_up, 0);
	atomic_store(&bytes_down, 0);
	/* A round is over when its successor opens: a task of that one proves it. */
	struct task t;
	ask(&devices[0], &t, workers[0].answer, workers[0].room);
	messages_task_deinit(&t);
	double start = now(), cpu = cpu_seconds(argv[7]);
	play_rounds(workers, threads, 2, rounds + 1);
	ask(&devices[0], &t, workers[0].answer, workers[0].room);
	double n = (double)rounds;
	printf("seconds %.4f cpu %.4f bytes_in %.0f bytes_out %.0f hwm_kib %ld rounds %u\n",
	    (now() - start) / n, (cpu_seconds(argv[7]) - cpu) / n, (double)bytes_up / n,
	    (double)bytes_down / n, peak_kib(argv[7]), rounds);
	return 0;
}
