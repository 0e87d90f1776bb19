/* stages: gcc clang openssl address */
/*
 * What jobs cost that are meant to cost much: processor time and memory of a submission, and of a start with thousands of them, as
 * the kernel counts them. Four owners use all that [limits] owner_* allow. JOBS=4000 is the whole, and takes a minute.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/resource.h>
#include <sys/wait.h>

#include "buf.h"
#include "coordinator_fixture.h"
#include "jobs_inside.h"
#include "modelfile.h"
#include "round.h"

#define OWNERS 4
#define START_MB 100
#define START_SECONDS 5.0
#define SUBMIT_SECONDS 0.2
#define BASE_MB 24 /* a coordinator without jobs */
#define HELD 1.3 /* times what its jobs are said to take */
#define ENDED_KB 2.0 /* each */
#define ENDED_SECONDS 0.0005
#define SMALL_BYTES 13000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

#define TAIL \
	",\"data\":{\"name\":\"d\",\"shape\":[1]},\"local\":{\"optimizer\":{\"rate\":1}}," \
	"\"round\":{\"goal\":1}"

static uint8_t ids[4096][16];
static uint64_t own_bytes; /* [limits] owner_document_bytes */
static char many_tensors[65]; /* id of a model of as many tensors as one may have */

static void
begin(struct buf *b, const char *kind, unsigned i)
{
	b->len = 0;
	assert_int_equal(
	    buf_printf(b, "{\"name\":\"%s\",\"seed\":%u,\"model\":{\"loss\":\"mse\",", kind, i),
	    ERR_OK);
}

static void
add(struct buf *b, const char *text)
{
	assert_int_equal(buf_append(b, text, strlen(text)), ERR_OK);
}

/* So many numbers, each between two texts. */
static void
add_list(struct buf *b, unsigned count, const char *before, const char *after)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(buf_printf(b, "%s%s%u%s", i ? "," : "", before, i, after), ERR_OK);
}

#define A16 "aaaaaaaaaaaaaaaa"
#define A_STARS "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*"

static void
many_layers(struct buf *b, unsigned i)
{
	begin(b, "layers", i);
	add(b, "\"layers\":[{\"type\":\"linear\",\"out\":1},");
	add_list(b, 254, "{\"type\":\"relu\",\"name\":\"r", "\"}");
	add(b, "]}" TAIL "}");
}

static void
long_names(struct buf *b, unsigned i)
{
	begin(b, "names", i);
	add(b, "\"layers\":[");
	add_list(b, 200, "{\"type\":\"linear\",\"out\":1,\"name\":\"" A16 A16 A16, "\"}");
	/* Names that end in bias need every step of each. */
	add(b, "]},\"tensors\":{");
	for (unsigned n = 0; n < 12; n++)
		assert_int_equal(buf_printf(b, "%s\"*%.*s*weight\":\"frozen\"", n ? "," : "",
				     (int)(40 + 2 * n), A_STARS),
		    ERR_OK);
	add(b, "}" TAIL "}");
}

static void
many_devices(struct buf *b, unsigned i)
{
	begin(b, "devices", i);
	add(b, "\"layers\":[{\"type\":\"linear\",\"out\":1}]}" TAIL ",\"select\":{\"devices\":[");
	add_list(b, 1024, "\"", "\"");
	add(b, "]}}");
}

static void
many_values(struct buf *b, unsigned i)
{
	begin(b, "values", i);
	add(b, "\"layers\":[{\"type\":\"linear\",\"out\":1}]}" TAIL ",\"params\":{\"a\":[");
	add_list(b, JOB_VALUES_MAX - 64, "", "");
	add(b, "]}}");
}

static void
whole_model(struct buf *b, unsigned i)
{
	begin(b, "model", i);
	add(b, "\"init\":\"");
	add(b, many_tensors);
	add(b, "\"},\"trainer\":\"own\",\"tensors\":{");
	add_list(b, 10, "\"*a*", "\":\"average\"");
	add(b, ",\"*\":\"train\"}" TAIL "}");
}

static void
small(struct buf *b, unsigned i)
{
	begin(b, "small", i);
	add(b, "\"layers\":[{\"type\":\"linear\",\"out\":1}]}" TAIL "}");
}

static void (*const kinds[])(struct buf *b, unsigned i) = {
    many_layers, long_names, many_devices, many_values, whole_model, small};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* --- submitting */

static unsigned
count_jobs(void)
{
	const char *text = getenv("JOBS");

	return text ? (unsigned)atoi(text) : IS_SANITIZED ? 2 * KINDS * OWNERS : 48;
}

static double
seconds(int who)
{
	struct rusage u;

	assert_int_equal(getrusage(who, &u), 0);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static enum err
put_row(struct store_db *db, void *row, struct why *why)
{
	(void)why;
	return store_model_put(db, row);
}

static void
put_many_tensors(struct coordinator *c)
{
	const struct modelfile_meta meta = {.round = 0};
	struct tensor_table table = {0};
	static float data[TENSOR_COUNT_MAX];
	struct store_model row = {.bytes = 1};
	struct buf head;
	char name[64];

	for (unsigned i = 0; i < TENSOR_COUNT_MAX; i++) {
		snprintf(name, sizeof(name), A16 "%u", i);
		assert_int_equal(
		    tensor_table_add(&table, name, (const uint64_t[]){1}, 1, &c->why), ERR_OK);
	}
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	assert_int_equal(modelfile_header(&head, &table, &meta), ERR_OK);
	assert_int_equal(
	    models_put(c->s.models, head.data, head.len, data, table.bytes, row.id, &c->why),
	    ERR_OK);
	row.bytes = head.len + table.bytes;
	assert_int_equal(store_write(c->s.store, put_row, &row, &c->why), ERR_OK);
	hex_encode(many_tensors, row.id, 32);
	buf_deinit(&head);
	tensor_table_deinit(&table);
}

/* The costliest that the owner may still have, if it wants so many small ones besides. */
static void
submit_one(struct coordinator *c, struct buf *b, unsigned i)
{
	uint64_t left = (count_jobs() - i) / OWNERS;

	c->config.owner_document_bytes = own_bytes - left * SMALL_BYTES;
	for (size_t kind = i / OWNERS % KINDS;; kind++) {
		struct engine_document d = {.bounded = true};
		bool created;

		if (kind == KINDS)
			fail_msg("job %u: %s", i, c->why.text);
		if (kind == KINDS - 1)
			c->config.owner_document_bytes = own_bytes;
		kinds[kind](b, i);
		d.text = b->data;
		d.len = b->len;
		memset(d.owner, 1 + (int)(i % OWNERS), sizeof(d.owner));
		enum err e = engine_submit(c->s.engine, &d, ids[i], &created, &c->why);
		if (!e)
			return;
		if (e != ERR_DENIED)
			fail_msg("%s: %s", err_name(e), c->why.text);
	}
}

/* --- a start in a process of its own, as the kernel counts it */

static unsigned long
peak_kb(void)
{
	char line[256];
	unsigned long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kb = strtoul(line + 6, NULL, 10);
	fclose(f);
	return kb;
}

static int
start_only(const char *dir)
{
	struct coordinator *c = coordinator_at(dir);

	printf("%lu %.3f %u\n", peak_kb(), seconds(RUSAGE_SELF), (unsigned)c->s.engine->job_count);
	fflush(stdout);
	_exit(0);
}

static void
start_costs(struct coordinator *c, const char *what, double most_mb, double most_s)
{
	char command[256];
	unsigned long kb;
	unsigned jobs;
	double s;

	coordinator_stop(c);
	snprintf(command, sizeof(command), "exec /proc/%d/exe start %s", (int)getpid(), c->dir);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lf %u", &kb, &s, &jobs), 3);
	assert_int_equal(pclose(f), 0);
	coordinator_start(c);
	printf(
	    "start with %u %s jobs: %lu MB, %.2f s of processor time\n", jobs, what, kb / 1024, s);
	assert_int_equal(jobs, count_jobs());
	if (IS_SANITIZED)
		return;
	if ((double)kb > most_mb * 1024 || s > most_s)
		fail_msg("more than %.0f MB or %.2f s", most_mb, most_s);
}

static enum err
end_jobs(struct store_db *db, void *arg, struct why *why)
{
	enum err e = ERR_OK;

	(void)arg;
	(void)why;
	for (unsigned i = 0; i < count_jobs() && !e; i++)
		e = store_job_set_state(db, ids[i], JOB_STOPPED, "", 1);
	return e;
}

/* As a coordinator leaves them that kept no short rows; the next start makes these. */
static void
end_all(struct coordinator *c)
{
	assert_int_equal(store_write(c->s.store, end_jobs, NULL, &c->why), ERR_OK);
	coordinator_stop(c);
	coordinator_start(c);
}

static uint64_t
held_bytes(struct coordinator *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count_jobs(); i++)
		sum += job_memory(jobs_find(c->s.engine, ids[i]));
	return sum;
}

static void
hostile_jobs(void **state)
{
	struct coordinator *c = *state;
	unsigned count = count_jobs();
	struct buf b;

	own_bytes = c->config.owner_document_bytes;
	assert_true(count % OWNERS == 0 && count <= sizeof(ids) / sizeof(ids[0]));
	buf_init(&b, JOB_DOCUMENT_MAX);
	put_many_tensors(c);
	double before = seconds(RUSAGE_SELF);
	for (unsigned i = 0; i < count; i++)
		submit_one(c, &b, i);
	double each = (seconds(RUSAGE_SELF) - before) / count;
	printf("a submission: %.1f ms of processor time\n", each * 1000);
	assert_true(IS_SANITIZED || each < SUBMIT_SECONDS);
	buf_deinit(&b);
	double most = BASE_MB + HELD * (double)held_bytes(c) / (1 << 20);
	start_costs(c, "hostile", fmin(most, START_MB), START_SECONDS);
	end_all(c);
	start_costs(c, "ended", BASE_MB + ENDED_KB * count / 1024, 0.1 + ENDED_SECONDS * count);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(hostile_jobs, coordinator_setup, coordinator_teardown),
	};

	if (argc == 3 && strcmp(argv[1], "start") == 0)
		return start_only(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
