/* stages: gcc clang address */
/* The seam between a training's loop and what makes its steps: another stepper, which works when a step is made and not before, and whose network
 * the loop has only as figures, gives the bits of the network in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "draw.h"
#include "glyphs.h"
#include "job.h"
#include "tensor.h"
#include "train.h"

#define EXAMPLES 50
#define PIECES_MAX 64
#define LAYERS \
	"\"model\": {\"layers\": [{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 8}, " \
	"{\"type\": \"layernorm\"}, {\"type\": \"relu\"}, {\"type\": \"dropout\", \"rate\": " \
	"0.25}, {\"type\": \"linear\", \"out\": 10}], \"loss\": \"cross_entropy\", " \
	"\"ignore_index\": 3, \"class_weights\": [1, 0, 2, 1, 1, 1, 1, 1, 1, 4]}"

static struct why why;

/* A piece, or a batch to evaluate, until it is worked on. */
struct kept {
	struct net_batch batch;
	struct draw draw;
	float share;
	bool folds;
};

struct later {
	struct net *net;
	struct kept kept[PIECES_MAX];
	struct net_result *sums;
	size_t count;
	unsigned steps, folds, begun;
	enum err fails; /* what the third step ends with */
};

static void
keep(struct later *l, const struct net_batch *b, float share)
{
	struct kept *k = &l->kept[l->count++];
	size_t x = b->n * net_inputs(l->net) * sizeof(float), y = b->n * sizeof(int32_t);

	assert_in_range(l->count, 1, PIECES_MAX);
	*k = (struct kept){.batch = *b, .share = share};
	float *values = malloc(x);
	int32_t *labels = malloc(y);
	memcpy(values, b->x, x);
	memcpy(labels, b->labels, y);
	k->batch.x = values;
	k->batch.labels = labels;
	if (b->draw) {
		k->draw = *b->draw;
		k->batch.draw = &k->draw;
	}
}

static void
drop(struct later *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free((void *)(uintptr_t)l->kept[i].batch.x);
		free((void *)(uintptr_t)l->kept[i].batch.labels);
	}
	l->count = 0;
}

static enum err
begin(void *self, const struct net_update *how, struct why *w)
{
	struct later *l = self;

	l->begun++;
	return net_prepare(l->net, how, w);
}

/* What the caller lends is gone afterwards. */
static enum err
batch(void *self, const struct net_update *how, const struct stepper_piece *piece,
    struct net_result *sums)
{
	struct later *l = self;

	l->sums = sums;
	assert_in_range(piece->count, 1, how->parts);
	assert_int_equal(piece->batch.draw->step, l->steps);
	assert_int_equal(piece->batch.draw->micro_batch, l->count);
	assert_in_range(l->count, 0, piece->count - 1);
	keep(l, &piece->batch, piece->share);
	memset((void *)(uintptr_t)piece->batch.x, 0xff, sizeof(float));
	return ERR_OK;
}

static enum err
fold(void *self)
{
	struct later *l = self;

	l->folds++;
	l->kept[l->count - 1].folds = true;
	return ERR_OK;
}

static void
add(struct net_result *sums, const struct net_result *one)
{
	sums->loss += one->loss;
	sums->weight += one->weight;
	sums->right += one->right;
	sums->labels += one->labels;
}

static enum err
step(void *self, const struct net_update *how)
{
	struct later *l = self;

	for (size_t i = 0; i < l->count; i++) {
		const struct kept *k = &l->kept[i];
		struct net_result got;
		if (how->parts > 1)
			assert_int_equal(net_add(l->net, &k->batch, k->share, &got), ERR_OK);
		else
			assert_int_equal(net_step(l->net, &k->batch, how, &got), ERR_OK);
		add(l->sums, &got);
		if (k->folds)
			net_fold(l->net);
	}
	if (how->parts > 1)
		net_move(l->net, how);
	drop(l);
	return ++l->steps == 3 ? l->fails : ERR_OK;
}

static enum err
evaluate(void *self, const struct net_batch *b, uint64_t batches, struct net_result *sums,
    struct counts *counts)
{
	struct later *l = self;
	const struct stepper direct = stepper_net(l->net);

	if (b) {
		keep(l, b, 1);
		return ERR_OK;
	}
	for (size_t i = 0; i < l->count; i++)
		assert_int_equal(
		    direct.calls->evaluate(l->net, &l->kept[i].batch, batches, sums, counts),
		    ERR_OK);
	drop(l);
	return ERR_OK;
}

static enum err
parameters(void *self, uint64_t first, size_t n, float *values, bool set)
{
	const struct stepper direct = stepper_net(((struct later *)self)->net);

	return direct.calls->parameters(direct.self, first, n, values, set);
}

static const struct stepper_calls calls = {begin, batch, fold, step, evaluate, parameters};

/* --- jobs */

static struct job_spec
job_of(const char *local)
{
	struct job_spec job;
	char text[2048];
	int n = snprintf(text, sizeof(text),
	    "{\"name\": \"n\", " LAYERS ", \"data\": {\"name\": \"d\", \"shape\": [1, 28, 28], "
	    "\"classes\": 10}, \"local\": {%s, \"random\": \"counter\", \"prox\": 0.01, "
	    "\"optimizer\": {\"rate\": 0.1, \"momentum\": 0.5}}, \"round\": {\"goal\": 1}%s}",
	    local,
	    strstr(local, "epochs") ? ", \"parallel\": {\"micro_batch\": 3, \"groups\": 2}" : "");

	if (job_parse(&job, text, (size_t)n, &why))
		fail_msg("%s", why.text);
	return job;
}

static struct net *
net_of(const struct job_spec *job, unsigned planned)
{
	struct net *net;
	const struct net_part whole = {.spec = &job->recipe.net,
	    .classes = 10,
	    .last = job->recipe.net.layer_count,
	    .max_batch = 12,
	    .contexts = 1,
	    .train = true,
	    .planned = planned};

	if (net_new_part(&net, &whole, &why))
		fail_msg("%s", why.text);
	if (!planned)
		net_init(net, 3);
	return net;
}

/* --- */

struct outcome {
	struct train_result result;
	struct train_score score;
	struct counts *counts;
};

static struct outcome
work(struct stepper s, const struct job_spec *job, const struct dataset *d)
{
	const struct figure_set wanted = {.classes = true};
	struct train_config config = {
	    .local = &job->recipe.local, .data = &job->recipe.data, .round = 1, .seed = 11};
	struct outcome o;

	assert_int_equal(counts_new(&o.counts, &wanted, 10, NULL), ERR_OK);
	if (train_run(s, d, &config, &o.result, &why))
		fail_msg("%s", why.text);
	config.counts = o.counts;
	if (train_evaluate_while(s, d, &config, &o.score, &why))
		fail_msg("%s", why.text);
	return o;
}

static void
another_stepper_gives_the_same_bits(void **state)
{
	/* One piece a step; several, of which the last ones of an epoch are fewer; by hand 50 examples are 12 + 12 + 12 + 12 + 2, in pieces of 3. */
	static const struct {
		const char *local;
		unsigned steps, folds;
	} rows[] = {
	    {"\"steps\": 9, \"batch\": 12", 9, 0},
	    {"\"epochs\": 2, \"batch\": 12", 10, 2 * (4 * 2 + 1)},
	};
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, EXAMPLES, 0), ERR_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct job_spec job = job_of(rows[i].local);
		struct net *net = net_of(&job, 0), *figures = net_of(&job, 1);
		struct later later = {.net = net_of(&job, 0)};
		const struct outcome a = work(stepper_net(net), &job, &d);
		const struct outcome b =
		    work((struct stepper){&calls, &later, figures, 1}, &job, &d);
		assert_int_equal(later.begun, 1);
		assert_int_equal(later.steps, rows[i].steps);
		assert_int_equal(later.folds, rows[i].folds);
		assert_memory_equal(
		    net_params(net), net_params(later.net), net_tensors(net)->bytes);
		assert_memory_equal(&a.result, &b.result, offsetof(struct train_result, partial));
		assert_memory_equal(&a.score, &b.score, sizeof(a.score));
		assert_memory_equal(
		    a.counts->classes, b.counts->classes, 10 * sizeof(*a.counts->classes));
		assert_true(a.result.labels < EXAMPLES * rows[i].steps);
		counts_free(a.counts);
		counts_free(b.counts);
		net_free(net);
		net_free(later.net);
		net_free(figures);
		job_deinit(&job);
	}
	dataset_deinit(&d);
}

/* What a step fails with ends the training, and is said. */
static void
a_step_that_fails(void **state)
{
	struct job_spec job = job_of("\"steps\": 9, \"batch\": 12");
	struct net *figures = net_of(&job, 1);
	struct later later = {.net = net_of(&job, 0), .fails = ERR_CLOSED};
	const struct train_config config = {
	    .local = &job.recipe.local, .data = &job.recipe.data, .round = 1, .seed = 11};
	struct train_result result;
	struct dataset d;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, EXAMPLES, 0), ERR_OK);
	assert_int_equal(
	    train_run((struct stepper){&calls, &later, figures, 1}, &d, &config, &result, &why),
	    ERR_CLOSED);
	assert_string_equal(why.text, "step 3 failed");
	assert_int_equal(later.steps, 3);
	net_free(later.net);
	net_free(figures);
	job_deinit(&job);
	dataset_deinit(&d);
}

static void
parameters_by_pieces(void **state)
{
	struct job_spec job = job_of("\"steps\": 1, \"batch\": 12");
	struct net *net = net_of(&job, 0);
	const struct stepper s = stepper_net(net);
	float some[3] = {1, 2, 3}, back[3];

	(void)state;
	assert_int_equal(s.calls->parameters(s.self, 7, 3, some, true), ERR_OK);
	assert_int_equal(s.calls->parameters(s.self, 7, 3, back, false), ERR_OK);
	assert_memory_equal(some, back, sizeof(some));
	assert_memory_equal(net_params(net) + 7, some, sizeof(some));
	/* One that is no number is found, wherever it stands. */
	uint64_t last = net_tensors(net)->elements - 1;
	struct train_config config = {
	    .local = &job.recipe.local, .data = &job.recipe.data, .round = 1, .seed = 11};
	float *shift = calloc(last + 1, sizeof(*shift));
	struct train_result result;
	struct dataset d;
	assert_int_equal(glyphs_make(&d, 1, 2, EXAMPLES, 0), ERR_OK);
	shift[last] = INFINITY;
	config.shift = shift;
	assert_int_equal(train_run(s, &d, &config, &result, &why), ERR_NUMERIC);
	assert_string_equal(why.text, "a weight is not finite after 1 steps");
	free(shift);
	net_free(net);
	job_deinit(&job);
	dataset_deinit(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(another_stepper_gives_the_same_bits),
	    cmocka_unit_test(a_step_that_fails),
	    cmocka_unit_test(parameters_by_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
