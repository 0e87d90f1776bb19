/* stages: gcc clang openssl address */
/* A program's task of which nothing is in the agent's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "codec_elements.h"
#include "local.h"
#include "own_program.h"

/* The same task where the weights are not in memory. */
static void
make_stream(struct trial *t)
{
	struct work *w = &t->work;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", w->path);
	free(w->weights);
	free(w->params);
	free(w->recipe);
	tensor_table_deinit(&w->table);
	w->weights = NULL;
	w->streams = true;
	trial_check(work_load(w, path, 0, &why), &why);
	assert_null(w->weights);
}

/* A program's program: local tensors, another order of tensors in two files. */
#define LEAVE \
	LOOK("assert set(read(t['local'])) == {'fc.bias'}, t\n" \
	     "w = read('base.safetensors')['fc.weight']\n" \
	     "def leave(path, name, shape, v):\n" \
	     "    h = json.dumps({name: {'dtype': 'F32', 'shape': shape, 'data_offsets': [0, " \
	     "4 * len(v)]}}).encode()\n" \
	     "    open(path, 'wb').write(struct.pack('<Q', len(h)) + h + struct.pack('<%df' % " \
	     "len(v), *v))\n" \
	     "leave('one', 'fc.bias', [2], [x + 5 for x in read(t['local'])['fc.bias']])\n" \
	     "leave('two', 'fc.weight', [2, 2], [x * 3 for x in w])\n") \
	"echo '{\"examples\": 40, \"steps\": 4, \"loss\": 1, \"after\": [\"one\", " \
	"\"two\"]}' > report.json\n"

static void
read_delta(const struct work *w, float out[4])
{
	struct work_delta source;

	assert_int_equal(w->table.elements, 4);
	trial_check(work_delta_open(&source, w, &why), &why);
	const struct codec_elements values = work_delta_values(&source);
	/* In parts, and more than once. */
	for (uint64_t first = 0; first < 4; first += 3)
		trial_check(values.read(values.context, first, first ? 1 : 3, out + first), &why);
	work_delta_close(&source);
}

static void
read_local(const struct trial *t, float out[2])
{
	char *data, path[128];
	size_t len;

	assert_int_equal(local_save(&t->work, t->home, &why), ERR_OK);
	snprintf(path, sizeof(path), "%s/local/%.32s.weights", t->home, t->work.task.job);
	assert_int_equal(file_read(path, 100, &data, &len, NULL), ERR_OK);
	assert_int_equal(len, 16 + 8 + 32);
	memcpy(out, data + 16, 8);
	free(data);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

/* Nothing of the model is in memory, and delta and local tensors are the same. */
static void
test_streams(void **state)
{
	struct trial t;
	float delta[2][4], left[2][2];

	(void)state;
	for (int streams = 0; streams < 2; streams++) {
		trial_init(&t, EXT_JOB, own(""));
		if (streams)
			make_stream(&t);
		assert_int_equal(run_at(&t, LEAVE), ERR_OK);
		assert_int_equal(t.work.weights == NULL, streams);
		read_delta(&t.work, delta[streams]);
		read_local(&t, left[streams]);
		assert_int_equal(work_unchanged(&t.work, &why), ERR_OK);
		trial_deinit(&t);
	}
	assert_memory_equal(delta[0], delta[1], sizeof(delta[0]));
	assert_memory_equal(left[0], left[1], sizeof(left[0]));
	assert_true(left[0][0] == 5 && (delta[0][0] > 0 || delta[0][0] < 0));
}

/* A program that is not gone: what it cuts short or changes while it is read is an error, and a value that is not finite is named. */
static void
test_changed_later(void **state)
{
	struct trial t;
	struct work_delta source;
	float out[4];

	(void)state;
	trial_init(&t, EXT_JOB, own(""));
	make_stream(&t);
	assert_int_equal(run_at(&t, LEAVE), ERR_OK);
	assert_int_equal(t.work.files->left_count, 2);
	/* As the one that has it open. */
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t.work.files->left[1].fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	trial_check(work_delta_open(&source, &t.work, &why), &why);
	const struct codec_elements values = work_delta_values(&source);
	assert_int_equal(values.read(values.context, 0, 4, out), ERR_OK);
	assert_int_equal(file_pwrite(fd, &(float){NAN}, 4, (uint64_t)st.st_size - 8), ERR_OK);
	assert_int_equal(values.read(values.context, 0, 4, out), ERR_NUMERIC);
	assert_non_null(strstr(why.text, "fc.weight"));
	assert_int_equal(ftruncate(fd, st.st_size - 4), 0);
	assert_int_equal(values.read(values.context, 0, 4, out), ERR_IO);
	assert_non_null(strstr(why.text, "fc.weight"));
	assert_int_equal(work_unchanged(&t.work, &why), ERR_INVALID);
	work_delta_close(&source);
	close(fd);
	trial_deinit(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_streams), cmocka_unit_test(test_changed_later)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
