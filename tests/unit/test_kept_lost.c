/* stages: gcc openssl address */
/* That what a program kept is lost is told, whatever the task is and however it ends: the file is gone then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "events.h"
#include "own_program.h"

#define EVALUATES "echo '{\"evaluate\": {\"examples\": 10, \"loss\": 1}}' > report.json\n"
#define TRAINS "cp base.safetensors after.safetensors\necho '" REPORT "' > report.json\n"

static int told;

static void
hear(void *context, int level, const char *line)
{
	(void)context;
	told += level == EVENTS_ERROR && strstr(line, "kept.lost") != NULL;
}

static void
kept_path(char out[256], const struct trial *t, const char *file)
{
	snprintf(out, 256, "%s/kept%s%s", t->home, *file ? "/" : "", file);
}

static void
damage(const struct trial *t)
{
	char path[256], file[64];

	kept_path(path, t, "");
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(file, sizeof(file), "%s.state", t->work.task.job);
	kept_path(path, t, file);
	assert_int_equal(file_write(path, "RVK1, and no more", 17, 0600, &why), ERR_OK);
}

static void
damaged(void **state)
{
	static const struct {
		enum task_kind kind;
		const char *script;
		bool fails;
		int told;
	} rows[] = {{TASK_TRAIN, TRAINS, false, 1},
	    {TASK_TRAIN, TRAINS "echo x > keep.safetensors\n", false, 2},
	    {TASK_TRAIN, "exit 1\n", true, 1}, {TASK_EVALUATE, EVALUATES, false, 1},
	    {TASK_EVALUATE, "exit 1\n", true, 1}};
	const struct events events = {.sink = hear};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct trial t;
		char path[256];
		trial_init(&t, EXT_JOB, own(""));
		t.work.task.kind = rows[i].kind;
		t.in.seconds = 50;
		damage(&t);
		assert_int_equal(run_at(&t, rows[i].script) != ERR_OK, rows[i].fails);
		told = 0;
		trainer_out_tell(&t.out, &events, t.work.task.job);
		assert_int_equal(told, rows[i].told);
		/* Once. */
		assert_int_equal(run_at(&t, rows[i].script) != ERR_OK, rows[i].fails);
		told = 0;
		trainer_out_tell(&t.out, &events, t.work.task.job);
		assert_int_equal(told, rows[i].told - 1);
		kept_path(path, &t, "");
		assert_int_equal(file_remove_dir(path, NULL), ERR_OK);
		trial_deinit(&t);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(damaged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
