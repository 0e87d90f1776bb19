/* stages: gcc clang openssl address */
/* The seam of training/: a task in, weights out, from whatever holds the model, by whatever makes the steps; and from a directory, as an agent lays
 * it out for a program. All ways give the bits of the agent's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "directory.h"
#include "json.h"
#include "planned.h"
#include "result.h"
#include "task_directory.h"
#include "trial.h"

#define JOB_OF(local) \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"tensors\":{\"fc.bias\":\"local\"}," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":[\"a\",\"b\"],\"validation\":0." \
	"2},\"evaluate\":{\"by\":\"devices\"},\"local\":{" local \
	",\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1,\"momentum\":0.5}},\"round\":{\"goal\":1}}"
#define JOB JOB_OF("\"epochs\":2,\"batch\":12")
#define CONFIG "[device]\nthreads=1\n[trainer builtin]\nexec=/bin/true\n"
#define WEIGHT 16
#define BYTES 24

static struct why why;

/* The agent's way: what each other must come to. *base: weights before, with a bias that is this device's. */
struct known {
	struct trial t;
	uint8_t base[BYTES], trained[BYTES];
};

static void
begin(struct known *k)
{
	static const float bias[] = {0.5f, -0.25f};

	trial_init(&k->t, JOB, CONFIG);
	memcpy(k->t.work.weights + WEIGHT, bias, sizeof(bias));
	memcpy(k->base, k->t.work.weights, BYTES);
	if (trainer_builtin_run(&k->t.in, &k->t.out, &why))
		fail_msg("%s", why.text);
	memcpy(k->trained, k->t.work.weights, BYTES);
	assert_memory_not_equal(k->base, k->trained, WEIGHT);
	assert_memory_not_equal(k->base + WEIGHT, k->trained + WEIGHT, BYTES - WEIGHT);
	memcpy(k->t.work.weights, k->base, BYTES);
}

static void
end(struct known *k)
{
	trainer_out_deinit(&k->t.out);
	trial_deinit(&k->t);
}

static void
same_figures(const struct known *k, const struct training_out *out)
{
	const struct finish *f = &k->t.out.finish;

	assert_int_equal(out->result.steps, f->steps);
	assert_int_equal(out->result.examples, f->examples);
	assert_true(out->result.loss == f->loss && out->result.accuracy == f->accuracy);
	assert_true(out->result.normaliser == f->normaliser);
	assert_int_equal(out->optimizer, f->optimizer);
	assert_true(out->report.has_evaluate);
	assert_true(out->report.eval_loss == k->t.out.report.eval_loss);
}

/* --- a model that somebody else holds */

struct holder {
	const struct known *known;
	uint8_t taken[BYTES];
	uint64_t read, spent, takes;
	enum err fails; /* what take ends with */
};

static enum err
hold(void *context, const struct tensor *t, uint64_t at, size_t len, void *out)
{
	struct holder *h = context;

	assert_int_equal(h->spent, 0);
	assert_in_range(len, 1, t->end - t->begin - at);
	memcpy(out, h->known->base + t->begin + at, len);
	h->read += len;
	return ERR_OK;
}

static void
spend(void *context)
{
	((struct holder *)context)->spent++;
}

static enum err
take(void *context, const struct training_source *after, struct why *w)
{
	struct holder *h = context;
	const struct tensor_table *table = &h->known->t.work.table;

	h->takes++;
	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *t = &table->items[i];
		/* In two pieces, the second first. */
		size_t half = (size_t)(t->end - t->begin) / 2;
		for (int piece = 1; piece >= 0; piece--) {
			size_t from = piece ? half : 0;
			uint8_t *to = h->taken + t->begin + from;
			assert_int_equal(after->read(after->context, t, from, half, to), ERR_OK);
		}
	}
	return h->fails ? err_set(w, h->fails, "no place") : ERR_OK;
}

static struct training_in
task_of(struct holder *h)
{
	const struct trial *t = &h->known->t;
	const struct task *task = &t->work.task;

	return (struct training_in){.recipe = &task->recipe,
	    .kind = task->kind,
	    .seed = task->seed,
	    .round = task->round,
	    .device = t->in.device,
	    .table = &t->work.table,
	    .base = {hold, spend, h},
	    .train = &t->train,
	    .validation = &t->validation,
	    .take = take,
	    .taker = h};
}

static void
from_any_holder(void **state)
{
	struct known k;
	struct training_out out;

	(void)state;
	begin(&k);
	struct holder h = {.known = &k};
	struct training_in in = task_of(&h);
	if (training_run(&in, &out, &why))
		fail_msg("%s", why.text);
	/* All of it once; all of the trained ones then. */
	assert_int_equal(h.read, BYTES);
	assert_int_equal(h.spent, 1);
	assert_int_equal(h.takes, 1);
	assert_memory_equal(h.taken, k.trained, BYTES);
	same_figures(&k, &out);
	training_out_deinit(&out);
	/* Who cannot take them fails the task. */
	h = (struct holder){.known = &k, .fails = ERR_IO};
	in = task_of(&h);
	assert_int_equal(training_run(&in, &out, &why), ERR_IO);
	assert_int_equal(out.abort, ABORT_TRAINER_FAILED);
	assert_string_equal(why.text, "no place");
	training_out_deinit(&out);
	/* An evaluation leaves the model where it is, and has nothing to take. */
	h = (struct holder){.known = &k};
	in = task_of(&h);
	in.kind = TASK_EVALUATE;
	if (training_run(&in, &out, &why))
		fail_msg("%s", why.text);
	assert_int_equal(h.spent + h.takes, 0);
	assert_true(out.report.eval_loss == k.t.out.report.eval_loss);
	training_out_deinit(&out);
	end(&k);
}

static void
by_any_stepper(void **state)
{
	struct known k;
	struct training_out out;
	struct net *net, *figures;

	(void)state;
	begin(&k);
	struct holder h = {.known = &k};
	struct training_in in = task_of(&h);
	struct net_part whole = planned_training(in.recipe, in.train, in.validation->count);
	assert_int_equal(net_new_part(&net, &whole, &why), ERR_OK);
	whole.planned = 1;
	assert_int_equal(net_new_part(&figures, &whole, &why), ERR_OK);
	struct stepper stepper = stepper_net(net);
	stepper.net = figures;
	in.stepper = &stepper;
	/* No limit of this process's network is one of the stepper's. */
	in.memory_bytes = 1;
	if (training_run(&in, &out, &why))
		fail_msg("%s", why.text);
	assert_memory_equal(h.taken, k.trained, BYTES);
	same_figures(&k, &out);
	training_out_deinit(&out);
	in.stepper = NULL;
	assert_int_equal(training_run(&in, &out, &why), ERR_LIMIT);
	assert_int_equal(out.abort, ABORT_OUT_OF_MEMORY);
	training_out_deinit(&out);
	net_free(net);
	net_free(figures);
	end(&k);
}

/* --- a directory */

static void
lay_out(struct task_directory *dir, const struct known *k)
{
	const struct trial *t = &k->t;
	const struct task_directory_options from = {.work = &t->work,
	    .train = &t->train,
	    .validation = &t->validation,
	    .settings = t->settings,
	    .place = {.home = t->home, .trainer = &t->settings->trainers[0]},
	    .kept_home = t->home,
	    .device = t->in.device};

	if (task_directory_make(dir, &from, &why))
		fail_msg("%s", why.text);
}

static void
from_a_directory(void **state)
{
	struct known k;
	struct task_directory dir;
	struct directory d;
	struct training_out out;
	struct tensors after;
	char path[PATH_MAX], *text;
	struct json *report;
	size_t len;
	double loss;

	(void)state;
	begin(&k);
	lay_out(&dir, &k);
	if (directory_open(&d, dir.path, &why))
		fail_msg("%s", why.text);
	struct training_in in = directory_task(&d);
	in.take = result_take;
	in.taker = &d;
	if (training_run(&in, &out, &why) || result_report(&d, &out, &why))
		fail_msg("%s", why.text);
	same_figures(&k, &out);
	training_out_deinit(&out);
	directory_close(&d);
	/* What travels and what stays, in the model's order. */
	assert_int_equal(directory_file(path, dir.path, "after.safetensors", &why), ERR_OK);
	assert_int_equal(tensors_open(&after, path, &why), ERR_OK);
	assert_int_equal(after.table.count, 2);
	assert_int_equal(after.table.bytes, BYTES);
	assert_memory_equal(after.data, k.trained, BYTES);
	tensors_close(&after);
	assert_int_equal(directory_file(path, dir.path, "report.json", &why), ERR_OK);
	assert_int_equal(file_read(path, 1 << 16, &text, &len, &why), ERR_OK);
	assert_int_equal(json_parse(&report, text, len, &why), ERR_OK);
	assert_true(json_double(json_get(report, "loss"), &loss) && loss == k.t.out.finish.loss);
	json_free(report);
	free(text);
	task_directory_remove(&dir);
	end(&k);
}

/* Puts `to` in the place of `from` in the directory's task.json. */
static void
change(const struct task_directory *dir, const char *from, const char *to)
{
	char path[PATH_MAX], *text, *all;
	size_t len;

	assert_int_equal(directory_file(path, dir->path, "task.json", &why), ERR_OK);
	assert_int_equal(file_read(path, 1 << 20, &text, &len, &why), ERR_OK);
	const char *at = strstr(text, from);
	assert_non_null(at);
	assert_true(asprintf(&all, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	assert_int_equal(file_write(path, all, strlen(all), 0600, &why), ERR_OK);
	free(all);
	free(text);
}

static void
directories_that_are_none(void **state)
{
	static const struct {
		const char *from, *to;
		enum err e;
		const char *said;
	} rows[] = {
	    {"\"device\"", "\"other\"", ERR_UNSUPPORTED, "names no device"},
	    {"\"base\"", "\"other\"", ERR_INVALID, "names no base"},
	    {"\"examples\"", "\"other\"", ERR_UNSUPPORTED, "no examples"},
	    {"local.safetensors", "task.json", ERR_LIMIT, "header is longer"},
	    {"base.safetensors", "nothing.safetensors", ERR_NOTFOUND, "nothing.safetensors"},
	    {"\"fc.bias\"", "\"*\"", ERR_INVALID, "the model has nothing to train"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct known k;
		struct task_directory dir;
		struct directory d;
		begin(&k);
		lay_out(&dir, &k);
		change(&dir, rows[i].from, rows[i].to);
		enum err e = directory_open(&d, dir.path, &why);
		if (e != rows[i].e || !strstr(why.text, rows[i].said))
			fail_msg("%zu: %s: %s", i, err_name(e), why.text);
		directory_close(&d);
		task_directory_remove(&dir);
		end(&k);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(from_any_holder),
	    cmocka_unit_test(by_any_stepper),
	    cmocka_unit_test(from_a_directory),
	    cmocka_unit_test(directories_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
