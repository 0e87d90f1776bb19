/* stages: gcc address */
/* What a program keeps between its tasks: when it comes into force, whose it is, how much of it there may be, and a device that is
 * killed anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "file.h"

/* Every named place of program_state.c, and those of the course below, count. */
#include "killed.h"

#include "program_state.c"

#define JOB "00000000000000000000000000000abc"
#define OTHER "00000000000000000000000000000def"
#define MODEL "00000000000000000000000000000000000000000000000000000000000000aa"
#define TASKS 24
#define ROOM 4096

static char home[64];
static struct tensor item = {.name = "fc.weight", .dims = 1, .shape = {2}};

static int
set_up(void **state)
{
	char path[128];

	(void)state;
	strcpy(home, "/tmp/test_program_state.XXXXXX");
	assert_non_null(mkdtemp(home));
	snprintf(path, sizeof(path), "%s/outbox", home);
	assert_int_equal(mkdir(path, 0700), 0);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(file_remove_dir(home, NULL), ERR_OK);
	return 0;
}

static struct work
work_of(const char *job, unsigned number)
{
	struct work w = {.task = {.round = number + 1, .kind = TASK_TRAIN},
	    .table = {.items = &item, .count = 1}};

	strcpy(w.task.job, job);
	strcpy(w.task.model, MODEL);
	snprintf(w.task.task, sizeof(w.task.task), "%032x", number);
	strcpy(w.task.recipe.trainer, "lora");
	return w;
}

static enum err
read_text(const void *context, void *out, size_t len, uint64_t at)
{
	memcpy(out, (const char *)context + at, len);
	return ERR_OK;
}

/* A model file that says `value`, of `bytes` at least. */
static size_t
make(char *out, unsigned value, size_t bytes)
{
	char head[256];
	uint64_t len;

	snprintf(head, sizeof(head),
	    "{\"__metadata__\":{\"state\":\"%u\"},\"t\":{\"dtype\":\"U8\",\"shape\":[%zu],"
	    "\"data_offsets\":[0,%zu]}}",
	    value, bytes, bytes);
	len = strlen(head);
	memcpy(out, &len, 8);
	memcpy(out + 8, head, len);
	memset(out + 8 + len, (int)value, bytes);
	return (size_t)(8 + len + bytes);
}

static enum err
keep_bytes(const struct work *w, const void *data, uint64_t bytes, uint64_t most, struct why *why)
{
	const struct program_state_source source = {read_text, data, bytes};

	return program_state_keep(w, home, most, &source, why);
}

static enum err
keep(const struct work *w, unsigned value, size_t bytes, uint64_t most)
{
	static char data[2 * ROOM];
	struct why why = {""};
	enum err e = keep_bytes(w, data, make(data, value, bytes), most, &why);

	assert_true(!e || why.text[0]);
	return e;
}

/* What is in force; -1: nothing. */
static int
value_of(const struct work *w)
{
	char data[ROOM], *at;
	struct kept k;
	int value = -1;

	if (program_state_open(&k, w, home, NULL))
		return -1;
	assert_true(k.file.count < sizeof(data));
	assert_int_equal(kept_read(&k, data, (size_t)k.file.count, 0), ERR_OK);
	data[k.file.count] = '\0';
	at = strstr(data + 8, "\"state\":\"");
	assert_non_null(at);
	value = atoi(at + 9);
	assert_int_equal(k.file.round, (uint64_t)value + 1);
	kept_close(&k);
	return value;
}

static void
write_entry(const char *task)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/outbox/%s.delta", home, task);
	assert_int_equal(file_write(path, "x", 1, 0600, NULL), ERR_OK);
}

static struct outbox
start(void)
{
	struct outbox o;

	assert_int_equal(outbox_init(&o, home, ROOM, NULL), ERR_OK);
	assert_int_equal(program_state_init(home, &o, NULL), ERR_OK);
	return o;
}

static unsigned
files(void)
{
	struct dirent *ent;
	DIR *d = open_dir(home);
	unsigned n = 0;

	while (d && (ent = readdir(d)))
		n += ent->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* --- a device that is killed, and the coordinator it reports to */

struct coordinator {
	int verdicts[TASKS]; /* 0: never seen, 1: accepted, 2: refused */
	int busy[TASKS];
	int last; /* the youngest that it accepted, and the device may not know of */
};

/* Each seventh comes too late; each fifth finds the coordinator busy, twice. As send.c does it. */
static void
send_one(struct coordinator *c, const struct outbox *o, unsigned number)
{
	const struct work w = work_of(JOB, number);

	if (!outbox_has(o, w.task.task) || (number % 5 == 2 && c->busy[number]++ < 2))
		return;
	killed_place();
	if (c->verdicts[number] == 0) {
		c->verdicts[number] = number % 7 == 3 ? 2 : 1;
		if (c->verdicts[number] == 1 && (int)number > c->last)
			c->last = (int)number;
	}
	killed_place();
	if (c->verdicts[number] == 1)
		assert_int_equal(program_state_accept(home, w.task.task, NULL), ERR_OK);
	killed_place();
	outbox_remove(o, w.task.task);
	killed_place();
	if (c->verdicts[number] == 2)
		program_state_refuse(home, w.task.task);
}

static void
live(void *arg)
{
	struct coordinator *c = arg;
	const struct outbox o = start();

	for (int turn = 0; turn < 3; turn++)
		for (unsigned n = 0; n < TASKS; n++) {
			const struct work w = work_of(JOB, n);
			for (unsigned k = 0; k < TASKS; k++)
				send_one(c, &o, TASKS - 1 - k);
			if (c->verdicts[n] != 0 || outbox_has(&o, w.task.task))
				continue;
			assert_int_equal(keep(&w, n, 40, ROOM), ERR_OK);
			killed_place();
			write_entry(w.task.task);
			killed_place();
			send_one(c, &o, n);
		}
}

/* In force is what the youngest delta made that the device knows to be accepted: the youngest of all, or one whose receipt it does not have
 * yet. */
static void
check_force(const void *arg)
{
	const struct coordinator *c = arg;
	const struct work w = work_of(JOB, 0);
	const struct outbox o = start();
	int value = value_of(&w);

	assert_true(value < 0 || c->verdicts[value] == 1);
	for (int n = value + 1; n <= c->last; n++) {
		const struct work other = work_of(JOB, (unsigned)n);
		/* Accepted, and not in force: its delta still waits for the receipt. */
		assert_true(c->verdicts[n] != 1 || outbox_has(&o, other.task.task));
	}
}

static void
test_killed(void **state)
{
	struct coordinator *c = killed_outlives(sizeof(*c));

	(void)state;
	c->last = -1;
	assert_true(killed_anywhere(11, live, check_force, c) >= 20);
	const struct work w = work_of(JOB, 0);
	assert_int_equal(value_of(&w), c->last);
	assert_int_equal(files(), 1);
	munmap(c, sizeof(*c));
}

/* --- single rules */

static void
course(void **state)
{
	const struct work a = work_of(JOB, 1), b = work_of(JOB, 2), other = work_of(OTHER, 3);

	(void)state;
	assert_int_equal(value_of(&a), -1);
	assert_int_equal(keep(&a, 9, 8, ROOM), ERR_OK);
	assert_int_equal(keep(&a, 1, 8, ROOM), ERR_OK); /* the last one counts */
	assert_int_equal(value_of(&a), -1);
	assert_int_equal(keep(&b, 2, 8, ROOM), ERR_OK);
	/* The younger is answered first. */
	assert_int_equal(program_state_accept(home, b.task.task, NULL), ERR_OK);
	assert_int_equal(value_of(&a), 2);
	assert_int_equal(program_state_accept(home, a.task.task, NULL), ERR_OK);
	assert_int_equal(program_state_accept(home, b.task.task, NULL), ERR_OK);
	assert_int_equal(value_of(&a), 2);
	assert_int_equal(value_of(&other), -1);
	assert_int_equal(files(), 1);
	/* Numbers of rounds that go back are no matter: the coordinator was restored. */
	assert_int_equal(keep(&a, 1, 8, ROOM), ERR_OK);
	assert_int_equal(program_state_accept(home, a.task.task, NULL), ERR_OK);
	assert_int_equal(value_of(&a), 1);
	assert_int_equal(keep(&b, 2, 8, ROOM), ERR_OK);
	program_state_refuse(home, b.task.task);
	assert_int_equal(program_state_accept(home, b.task.task, NULL), ERR_OK);
	assert_int_equal(value_of(&a), 1);
}

static void
whose(void **state)
{
	struct work w = work_of(JOB, 1), reader = work_of(JOB, 2);
	struct kept k;

	(void)state;
	for (int i = 0; i < 5; i++) {
		char path[PATH_MAX];
		assert_int_equal(keep(&w, 1, 8, ROOM), ERR_OK);
		assert_int_equal(program_state_accept(home, w.task.task, NULL), ERR_OK);
		assert_int_equal(value_of(&reader), 1);
		const struct tensor before = item;
		if (i == 0)
			strcpy(reader.task.recipe.trainer, "other");
		if (i == 1)
			item.shape[0] = 3;
		if (i == 2)
			strcpy(item.name, "fc.bias");
		if (i == 3)
			item.dtype = TENSOR_F16;
		assert_int_equal(path_of(path, home, JOB, STATE, NULL), ERR_OK);
		if (i == 4)
			assert_int_equal(truncate(path, 100), 0);
		struct why why = {""};
		assert_int_equal(program_state_open(&k, &reader, home, &why), ERR_CORRUPT);
		assert_true(why.text[0]);
		assert_int_equal(k.fd, -1);
		item = before;
		reader = work_of(JOB, 2);
		assert_int_equal(program_state_open(&k, &reader, home, NULL), ERR_NOTFOUND);
	}
	/* A task that evaluates reads, and never writes. */
	assert_int_equal(keep(&w, 1, 8, ROOM), ERR_OK);
	assert_int_equal(program_state_accept(home, w.task.task, NULL), ERR_OK);
	reader.task.kind = TASK_EVALUATE;
	assert_int_equal(value_of(&reader), 1);
	assert_int_equal(keep(&reader, 2, 8, ROOM), ERR_STATE);
	assert_int_equal(files(), 1);
}

/* A first state leaves room for the next one beside it; what is refused leaves everything as it was. */
static void
room(void **state)
{
	const struct work a = work_of(JOB, 1), b = work_of(JOB, 2), c = work_of(OTHER, 3);
	const uint64_t first = program_state_room(&a, home, ROOM);
	static char data[2 * ROOM];
	size_t around = make(data, 1, 1000) - 1000, most = (size_t)first - around - 1;

	(void)state;
	assert_int_equal(first, ROOM / 2 - 224);
	assert_int_equal(program_state_room(&a, home, 0), 0);
	assert_int_equal(keep(&a, 1, ROOM / 2, ROOM), ERR_LIMIT);
	assert_int_equal(files(), 0);
	assert_int_equal(keep(&a, 1, 8, 0), ERR_LIMIT);
	assert_int_equal(keep(&a, 1, most - 4, ROOM), ERR_OK);
	assert_int_equal(program_state_accept(home, a.task.task, NULL), ERR_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(keep(&b, 2, most - 4, ROOM), ERR_OK);
		assert_int_equal(keep(&c, 3, 100, ROOM), ERR_LIMIT);
		assert_int_equal(program_state_accept(home, b.task.task, NULL), ERR_OK);
		assert_int_equal(value_of(&a), 2);
	}
}

static void
formats(void **state)
{
	static const char *const wrong[] = {"", "x", "\2\0\0\0\0\0\0\0{}x", "\2\0\0\0\0\0\0\0[]",
	    "\200\2]q\1.pickle no safetensors"};
	static const size_t lens[] = {0, 1, 11, 10, 27};
	const struct work w = work_of(JOB, 1);
	static char data[2 * ROOM];

	(void)state;
	assert_int_equal(keep(&w, 1, 8, ROOM), ERR_OK);
	for (size_t i = 0; i < 5; i++) {
		struct why why = {""};
		assert_int_equal(keep_bytes(&w, wrong[i], lens[i], ROOM, &why), ERR_INVALID);
		assert_non_null(strstr(why.text, "no safetensors file"));
		assert_int_equal(files(), 1);
	}
	for (size_t i = 0; i < make(data, 1, 8); i++)
		assert_int_equal(keep_bytes(&w, data, i, ROOM, NULL), ERR_INVALID);
	/* Nothing but what is no tensor. */
	assert_int_equal(keep_bytes(&w, "\2\0\0\0\0\0\0\0{}", 10, ROOM, NULL), ERR_OK);
	assert_int_equal(keep(&w, 1, 8, ROOM), ERR_OK);
	assert_int_equal(program_state_accept(home, w.task.task, NULL), ERR_OK);
	assert_int_equal(value_of(&w), 1);
}

/* At a start goes what belongs to no delta, what a killed write left, and what was not used for 30 days; use is to be read. */
static void
starts(void **state)
{
	const struct work a = work_of(JOB, 1), b = work_of(JOB, 2), c = work_of(OTHER, 3);
	const struct utimbuf old = {.actime = 1000, .modtime = 1000};
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(keep(&a, 1, 8, ROOM), ERR_OK);
	assert_int_equal(keep(&b, 2, 8, ROOM), ERR_OK);
	write_entry(b.task.task);
	assert_int_equal(path_of(path, home, c.task.task, NEXT ".AbCdEf", NULL), ERR_OK);
	assert_int_equal(file_write(path, "x", 1, 0600, NULL), ERR_OK);
	start();
	assert_int_equal(files(), 1);
	assert_int_equal(program_state_accept(home, b.task.task, NULL), ERR_OK);
	assert_int_equal(path_of(path, home, JOB, STATE, NULL), ERR_OK);
	assert_int_equal(utime(path, &old), 0);
	start();
	assert_int_equal(value_of(&a), 2);
	for (int i = 0; i < 3; i++)
		start();
	assert_int_equal(files(), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(files(), 1);
		assert_int_equal(utime(path, &old), 0);
		start();
	}
	assert_int_equal(files(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(course, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(whose, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(room, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(formats, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(starts, set_up, tear_down)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
