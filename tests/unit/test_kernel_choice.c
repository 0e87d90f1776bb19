/* stages: gcc address thread */
/* The choice of kernels in a file: made once, believed only if it is whole and this machine's, and the same for all who ask at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kernel_choice.c"

static char home[PATH_MAX], path[PATH_MAX + 16];

static void
forget(void)
{
	struct gemm_choice usual = gemm_choice_usual();

	ready = false;
	memset(&kept, 0, sizeof(kept));
	gemm_choice_set(&usual);
}

static int
begin(void **state)
{
	(void)state;
	forget();
	assert_int_equal(file_scratch_dir(home, "kernel-choice", NULL), ERR_OK);
	snprintf(path, sizeof(path), "%s/kernels", home);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	assert_int_equal(file_remove_dir(home, NULL), ERR_OK);
	return 0;
}

/* As if this machine's quickest were what the words say. */
static struct text
made_of(const char *words)
{
	static const struct gemm_times none;
	struct gemm_choice choice = gemm_choice_usual();
	struct text t = {.len = 0};

	assert_int_equal(gemm_choice_read(&choice, words, NULL), ERR_OK);
	say_head(&t, false);
	say_choice(&t, &choice);
	say_times(&t, &none);
	say_sum(&t);
	return t;
}

static void
put(const char *text, size_t len)
{
	assert_int_equal(file_write(path, text, len, 0644, NULL), ERR_OK);
}

static void
expect_file(const char *text)
{
	char *data;
	size_t len;

	assert_int_equal(file_read(path, KERNEL_CHOICE_MAX, &data, &len, NULL), ERR_OK);
	assert_string_equal(data, text);
	free(data);
}

static void
expect_ways(const char *words)
{
	struct gemm_choice want = gemm_choice_usual(), got = gemm_choice_get();

	assert_int_equal(gemm_choice_read(&want, words, NULL), ERR_OK);
	assert_memory_equal(&want, &got, sizeof(want));
}

/* Measured at first, read afterwards. */
static void
once(void **state)
{
	struct stat first, again;
	struct gemm_choice in_file, used;

	(void)state;
	kernel_choice_ready(home);
	used = gemm_choice_get();
	assert_true(read_text(&in_file, kernel_choice_text(), strlen(kernel_choice_text()), false));
	assert_memory_equal(&used, &in_file, sizeof(used));
	expect_file(kernel_choice_text());
	assert_int_equal(stat(path, &first), 0);
	forget();
	kernel_choice_ready(home);
	used = gemm_choice_get();
	assert_memory_equal(&used, &in_file, sizeof(used));
	assert_int_equal(stat(path, &again), 0);
	assert_int_equal(first.st_ino, again.st_ino);
}

/* What was once kept stays, whatever would be quickest now; and the process asks no second time. */
static void
stays(void **state)
{
	struct text all_rounded = made_of("rounded"), other = made_of("openblas");

	(void)state;
	put(all_rounded.data, all_rounded.len);
	kernel_choice_ready(home);
	expect_ways("rounded");
	expect_file(all_rounded.data);
	put(other.data, other.len);
	kernel_choice_ready(home);
	expect_ways("rounded");
	assert_string_equal(kernel_choice_text(), all_rounded.data);
}

static void
with_sum(struct text *t)
{
	say_sum(t);
	assert_true(t->len < KERNEL_CHOICE_MAX);
}

/* Every byte counts, to the last. */
static void
damaged(void **state)
{
	struct text good = made_of("rounded");
	struct gemm_choice choice;

	(void)state;
	assert_true(read_text(&choice, good.data, good.len, false));
	for (size_t i = 0; i < good.len; i++) {
		struct text bad = good;
		bad.data[i] ^= 1;
		assert_false(read_text(&choice, bad.data, bad.len, false));
		bad = good;
		bad.data[i] = '\0';
		assert_false(read_text(&choice, bad.data, bad.len, false));
		assert_false(read_text(&choice, bad.data, i, false));
	}
	say(&good, "x");
	assert_false(read_text(&choice, good.data, good.len, false));
}

/* Another version's, another machine's, or one that does not name each class: with a right sum. */
static void
foreign(void **state)
{
	static const char *const changes[][2] = {{"kernels 1", "kernels 2"},
	    {"version ", "version 9"}, {"\ncpu ", "\ncpu another "}, {"vectors ", "vectors 1"},
	    {"\nblas ", "\nblas another "}, {" lanes=rounded", ""},
	    {" lanes=rounded", " lanes=rounded lanes=fused"}, {"rows=rounded", "rows=openblas"},
	    {"rows=rounded", "rows=fast"}};
	struct text good = made_of("rounded");
	struct gemm_choice choice;

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		const char *at = strstr(good.data, changes[i][0]);
		struct text bad = {.len = 0};
		assert_non_null(at);
		say(&bad, "%.*s%s%s", (int)(at - good.data), good.data, changes[i][1],
		    at + strlen(changes[i][0]));
		*strstr(bad.data, "sha256") = '\0';
		bad.len = strlen(bad.data);
		with_sum(&bad);
		assert_false(read_text(&choice, bad.data, bad.len, false));
		assert_true(!kernel_choice_take(bad.data) == (i != 4));
	}
}

/* It is made anew in its place. */
static void
mended(void **state)
{
	static char large[KERNEL_CHOICE_MAX + 100];
	struct text good = made_of("rounded");
	struct gemm_choice choice;

	(void)state;
	memset(large, 'x', sizeof(large));
	for (int i = 0; i < 3; i++) {
		put(i == 0	 ? ""
			: i == 1 ? good.data
				 : large,
		    i == 0	 ? 0
			: i == 1 ? good.len / 2
				 : sizeof(large));
		forget();
		kernel_choice_ready(home);
		expect_file(kernel_choice_text());
		assert_true(
		    read_text(&choice, kernel_choice_text(), strlen(kernel_choice_text()), false));
	}
}

/* The process has its choice all the same. */
static void
unwritable(void **state)
{
	char nowhere[PATH_MAX + 16];
	struct gemm_choice choice, used;

	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(nowhere, sizeof(nowhere), "%s/absent", home);
	for (int i = 0; i < 2; i++) {
		forget();
		kernel_choice_ready(i ? nowhere : home);
		used = gemm_choice_get();
		assert_true(
		    read_text(&choice, kernel_choice_text(), strlen(kernel_choice_text()), false));
		assert_memory_equal(&used, &choice, sizeof(used));
	}
}

/* Without a home: the user's cache, where a relative path is none. */
static void
caches(void **state)
{
	char inner[PATH_MAX + 64];

	(void)state;
	assert_int_equal(setenv("XDG_CACHE_HOME", home, 1), 0);
	kernel_choice_ready(NULL);
	snprintf(inner, sizeof(inner), "%s/rivulet/kernels", home);
	assert_int_equal(access(inner, R_OK), 0);
	forget();
	assert_int_equal(setenv("XDG_CACHE_HOME", "cache", 1), 0);
	assert_int_equal(setenv("HOME", home, 1), 0);
	kernel_choice_ready(NULL);
	snprintf(inner, sizeof(inner), "%s/.cache/rivulet/kernels", home);
	assert_int_equal(access(inner, R_OK), 0);
	forget();
	assert_int_equal(setenv("HOME", "", 1), 0);
	kernel_choice_ready(NULL);
	assert_true(strlen(kernel_choice_text()) > 0);
}

/* What an agent hands over counts, also where another choice is kept. */
static void
handed_over(void **state)
{
	struct text kept_one = made_of("openblas"), given = made_of("rounded");

	(void)state;
	put(kept_one.data, kept_one.len);
	assert_true(kernel_choice_take(given.data));
	expect_ways("rounded");
	kernel_choice_ready(home);
	expect_ways("rounded");
	assert_string_equal(kernel_choice_text(), given.data);
	assert_false(kernel_choice_take(""));
	expect_ways("rounded");
}

#define PROCESSES 4

/* All of them end with what the file says. */
static void
at_once(void **state)
{
	int gate[2], said[2];
	static char seen[PROCESSES * KERNEL_CHOICE_MAX];

	(void)state;
	for (int damaged_before = 0; damaged_before < 2; damaged_before++) {
		if (damaged_before)
			put("damaged", 7);
		forget();
		assert_int_equal(pipe(gate), 0);
		assert_int_equal(pipe(said), 0);
		for (int i = 0; i < PROCESSES; i++) {
			pid_t child = fork();
			assert_true(child >= 0);
			if (child > 0)
				continue;
			char c;
			close(gate[1]);
			(void)!read(gate[0], &c, 1);
			kernel_choice_ready(home);
			struct text t = kept;
			_exit(write(said[1], t.data, t.len) != (ssize_t)t.len);
		}
		close(gate[0]);
		close(gate[1]);
		close(said[1]);
		size_t len = 0;
		for (ssize_t n; (n = read(said[0], seen + len, sizeof(seen) - len)) > 0;)
			len += (size_t)n;
		close(said[0]);
		for (int i = 0; i < PROCESSES; i++) {
			int status;
			assert_true(wait(&status) > 0 && status == 0);
		}
		char *text;
		size_t each;
		assert_int_equal(file_read(path, KERNEL_CHOICE_MAX, &text, &each, NULL), ERR_OK);
		assert_int_equal(len, PROCESSES * each);
		for (int i = 0; i < PROCESSES; i++)
			assert_memory_equal(seen + (size_t)i * each, text, each);
		free(text);
	}
}

static void *
ask(void *unused)
{
	(void)unused;
	kernel_choice_ready(home);
	return strdup(kernel_choice_text());
}

static void
threads(void **state)
{
	pthread_t thread[4];
	void *text[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(thread[i], &text[i]), 0);
	for (int i = 0; i < 4; i++) {
		assert_string_equal((char *)text[i], kernel_choice_text());
		free(text[i]);
	}
	expect_file(kernel_choice_text());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(once, begin, end),
	    cmocka_unit_test_setup_teardown(stays, begin, end),
	    cmocka_unit_test_setup_teardown(damaged, begin, end),
	    cmocka_unit_test_setup_teardown(foreign, begin, end),
	    cmocka_unit_test_setup_teardown(mended, begin, end),
	    cmocka_unit_test_setup_teardown(unwritable, begin, end),
	    cmocka_unit_test_setup_teardown(at_once, begin, end),
	    cmocka_unit_test_setup_teardown(threads, begin, end),
	    cmocka_unit_test_setup_teardown(handed_over, begin, end),
	    cmocka_unit_test_setup_teardown(caches, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
