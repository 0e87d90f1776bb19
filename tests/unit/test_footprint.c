/* stages: gcc openssl address */
/* What a task takes of a device, with how many threads and in which pieces; what devices then took is in tests/e2e/68-memory.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataset.h"
#include "footprint.h"
#include "net_trial.h"
#include "settings.h"
#include "tensor.h"

#define NET \
	"{\"loss\": \"cross_entropy\", \"layers\": [{\"type\": \"conv2d\", \"out\": 16, " \
	"\"kernel\": 3, \"padding\": 1}, {\"type\": \"relu\"}, {\"type\": \"conv2d\", " \
	"\"out\": 16, \"kernel\": 3, \"padding\": 1}, {\"type\": \"relu\"}, " \
	"{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 4}]}"

#define WIDE \
	"{\"loss\": \"cross_entropy\", \"layers\": [{\"type\": \"flatten\"}, {\"type\": " \
	"\"linear\", \"out\": 500}, " \
	"{\"type\": \"linear\", \"out\": 4}]}"

struct task_of {
	struct recipe recipe;
	struct dataset train;
	struct footprint_want want;
};

static void
begin_with(struct task_of *t, const char *net, uint32_t batch, size_t examples)
{
	*t = (struct task_of){.train = {.count = examples,
				  .shape = {3, 24, 24},
				  .dims = 3,
				  .features = 3 * 24 * 24,
				  .classes = 4}};
	net_trial_recipe(&t->recipe, "\"shape\": [3, 24, 24], \"classes\": 4", net);
	t->recipe.local.batch = batch;
	t->want = (struct footprint_want){
	    .recipe = &t->recipe, .kind = TASK_TRAIN, .threads = 8, .train = &t->train};
}

static void
begin(struct task_of *t, uint32_t batch, size_t examples)
{
	begin_with(t, NET, batch, examples);
}

static void
end(struct task_of *t)
{
	recipe_deinit(&t->recipe);
}

static struct footprint
of(const struct footprint_want *want)
{
	struct footprint f;
	struct why why = {""};

	if (footprint_of(&f, want, &why))
		fail_msg("%s", why.text);
	return f;
}

static void
fewer_threads(void **state)
{
	struct task_of t;

	(void)state;
	begin(&t, 20, 100);
	struct footprint all = of(&t.want);
	assert_int_equal(all.threads, 8);
	t.want.most = all.peak;
	assert_int_equal(of(&t.want).threads, 8);
	t.want.most--;
	struct footprint half = of(&t.want);
	assert_int_equal(half.threads, 4);
	assert_true(half.peak < all.peak);
	/* One thread stays, and that is too much then. */
	t.want.most = 1;
	struct footprint one = of(&t.want);
	assert_int_equal(one.threads, 1);
	assert_true(one.peak < half.peak && one.peak > 1);
	assert_int_equal(one.peak, one.process + one.training);
	assert_int_equal(one.training,
	    one.data + one.costs.weights + one.costs.optimizer + one.costs.gradient +
		one.costs.contexts + one.costs.shared + one.costs.work);
	end(&t);
}

/* An evaluation makes no delta and keeps nothing for a way back; one that also measures a validation share has larger batches. */
static void
kinds(void **state)
{
	struct task_of t;

	(void)state;
	begin(&t, 10, 100);
	struct footprint trains = of(&t.want);
	t.want.validation = 100;
	struct footprint measures = of(&t.want);
	assert_true(measures.training > trains.training);
	t.want.kind = TASK_EVALUATE;
	struct footprint evaluates = of(&t.want);
	assert_int_equal(evaluates.delta, 0);
	assert_true(evaluates.training < measures.training);
	assert_int_equal(evaluates.weights, trains.weights);
	t.train.count = 0;
	assert_int_equal(footprint_of(&trains, &t.want, NULL), ERR_INVALID);
	end(&t);
}

/* Where little more than the weights counts, both copies of them do, before the training and after it. While it lasts there is one, if the
 * network has all that the model has. */
static void
copies(void **state)
{
	static const uint64_t shape[] = {3};
	struct task_of t;
	struct net *net;
	struct tensor_table more;

	(void)state;
	begin_with(&t, WIDE, 1, 10);
	t.want.threads = 1;
	struct footprint f = of(&t.want);
	assert_true(f.training < 2 * f.weights && f.delta < f.weights);
	assert_int_equal(f.peak, f.process + 2 * f.weights);
	t.recipe.local.variates = 1;
	struct footprint shifted = of(&t.want);
	assert_int_equal(shifted.training, f.training + f.weights);
	assert_int_equal(shifted.peak, f.process + 3 * f.weights);
	t.recipe.local.variates = 0;
	assert_int_equal(net_new(&net, &t.recipe.net, 4, 1, false, 0, NULL), ERR_OK);
	assert_int_equal(tensor_table_copy(&more, net_tensors(net)), ERR_OK);
	assert_int_equal(tensor_table_add(&more, "another", shape, 1, NULL), ERR_OK);
	t.want.table = &more;
	struct footprint beside = of(&t.want);
	assert_int_equal(beside.training, f.training + f.weights + 12);
	t.want.table = NULL;
	t.want.model_bytes = f.weights + (3 << 20);
	struct footprint file = of(&t.want);
	assert_int_equal(file.training, f.training + f.weights + (3 << 20));
	t.want.model_bytes = f.weights + 1000;
	assert_int_equal(of(&t.want).peak, f.peak);
	tensor_table_deinit(&more);
	net_free(net);
	end(&t);
}

static uint64_t
peak_with(struct task_of *t, uint64_t piece)
{
	struct footprint_want want = t->want;
	struct recipe recipe = t->recipe;

	recipe.local.micro_batch = (uint32_t)piece;
	want.recipe = &recipe;
	return of(&want).peak;
}

/* The largest that fits, for every limit between the least and the whole. */
static void
proposals(void **state)
{
	struct task_of t;
	struct footprint_proposal p;

	(void)state;
	begin(&t, 32, 100);
	t.want.threads = 1;
	uint64_t least = peak_with(&t, 1), whole = peak_with(&t, 32);
	assert_true(least < whole);
	for (uint64_t most = least; most < whole; most += (whole - least) / 37) {
		t.want.most = most;
		assert_int_equal(footprint_propose(&p, &t.want, NULL), ERR_OK);
		assert_in_range(p.micro_batch, 1, 31);
		assert_int_equal(p.peak, peak_with(&t, p.micro_batch));
		assert_true(p.peak <= most);
		assert_true(peak_with(&t, p.micro_batch + 1) > most);
	}
	t.want.most = whole;
	assert_int_equal(footprint_propose(&p, &t.want, NULL), ERR_OK);
	assert_int_equal(p.micro_batch, 32);
	t.want.most = least - 1;
	assert_int_equal(footprint_propose(&p, &t.want, NULL), ERR_OK);
	assert_int_equal(p.micro_batch, 0);
	assert_int_equal(p.peak, least);
	/* No piece of one example, and none that leaves one of a step, where a batch norm could do nothing with it. */
	t.recipe.local.least = 2;
	assert_int_equal(footprint_propose(&p, &t.want, NULL), ERR_OK);
	assert_int_equal(p.micro_batch, 0);
	assert_int_equal(p.peak, peak_with(&t, 2));
	t.recipe.local.batch = 31;
	t.want.most = peak_with(&t, 15);
	assert_int_equal(footprint_propose(&p, &t.want, NULL), ERR_OK);
	assert_int_equal(p.micro_batch, 14);
	assert_int_equal(p.peak, peak_with(&t, 14));
	t.recipe.local.least = 1;
	/* A batch of all examples. */
	t.recipe.local.batch = 0;
	t.want.most = UINT64_MAX;
	assert_int_equal(footprint_propose(&p, &t.want, NULL), ERR_OK);
	assert_int_equal(p.micro_batch, 100);
	end(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fewer_threads),
	    cmocka_unit_test(kinds),
	    cmocka_unit_test(copies),
	    cmocka_unit_test(proposals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
