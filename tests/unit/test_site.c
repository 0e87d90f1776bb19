/* stages: gcc clang address thread */
/* Pipelines, rings and replicas of ranks that are threads: the same weights and figures as one device, to the bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "cuts.h"
#include "glyphs.h"
#include "job.h"
#include "link_local.h"
#include "local_world.h"
#include "pieces.h"
#include "planned.h"
#include "tensor.h"
#include "train.h"

static struct why why;

/* Parts of a job's document. */
struct document {
	const char *model, *local, *rest;
	/* Layers that the first and the last stage have at least, because they share a weight; 0: none do. */
	uint32_t lead, trail;
	bool unnamed; /* its data has no classes */
	bool chained; /* a batch norm: no replicas */
};

static struct job_spec
job_of(const struct document *d)
{
	char text[4096];
	struct job_spec job;
	int n = snprintf(text, sizeof(text),
	    "{\"name\": \"n\", \"model\": {%s}, \"data\": {\"name\": \"d\", \"shape\": [1, 28, "
	    "28], "
	    "%s\"validation\": 0.1}, \"local\": {%s, \"random\": \"counter\"}, "
	    "\"round\": {\"goal\": 1}%s}",
	    d->model, d->unnamed ? "" : "\"classes\": 10, ", d->local, d->rest);

	assert_in_range(n, 1, sizeof(text) - 1);
	if (job_parse(&job, text, (size_t)n, &why))
		fail_msg("%s", why.text);
	return job;
}

/* Stages of about as many layers. */
static struct layout
layout_of(const struct job_spec *job, const struct document *doc, unsigned pipeline,
    unsigned replicas, bool ring, const struct pieces *pieces)
{
	struct layout l = {.pipeline = pipeline,
	    .replicas = replicas,
	    .ring = ring,
	    .pieces = pieces->parts,
	    .run = pieces_run(pieces)};
	unsigned stages = layout_last(&l) + 1;

	uint32_t layers = (uint32_t)job->recipe.net.layer_count, between = layers;
	if (doc->lead > 0 && stages > 2) {
		between = layers - doc->lead - doc->trail;
		for (unsigned s = 1; s < stages; s++)
			l.cut[s] = doc->lead + between * (s - 1) / (stages - 2);
	} else {
		for (unsigned s = 1; s < stages; s++)
			l.cut[s] = layers * s / stages;
	}
	l.cut[stages] = layers;
	for (unsigned s = 1; s < stages; s++) {
		struct cuts_crossing c;
		if (l.cut[s] <= l.cut[s - 1])
			l.cut[s] = l.cut[s - 1] + 1;
		while (cuts_crossed(&job->recipe.net, l.cut[s], &c))
			l.cut[s]++;
	}
	return l;
}

struct outcome {
	float *w;
	size_t n;
	struct train_result trained;
	struct train_score score;
};

static struct train_config
config_of(const struct job_spec *job)
{
	return (struct train_config){
	    .local = &job->recipe.local, .data = &job->recipe.data, .round = 1, .seed = 11};
}

static struct outcome
work(struct stepper s, const struct job_spec *job, const struct dataset *d,
    const struct dataset *validation)
{
	struct outcome o = {.n = (size_t)net_tensors(s.net)->elements};
	struct train_config config = config_of(job);
	struct net *drawn = NULL;

	if (net_new(&drawn, &job->recipe.net, 10, 1, false, 0, &why))
		fail_msg("%s", why.text);
	net_init(drawn, 7);
	assert_int_equal(s.calls->parameters(s.self, 0, o.n, net_params(drawn), true), ERR_OK);
	net_free(drawn);
	if (figure_set_any(&job->recipe.figures))
		assert_int_equal(counts_new(&config.counts, &job->recipe.figures,
				     job->recipe.data.class_count, &why),
		    ERR_OK);
	if (train_evaluate_while(s, validation, &config, &o.score, &why))
		fail_msg("%s", why.text);
	counts_free(config.counts);
	if (train_run(s, d, &config, &o.trained, &why))
		fail_msg("%s", why.text);
	o.w = malloc(o.n * sizeof(*o.w));
	assert_int_equal(s.calls->parameters(s.self, 0, o.n, o.w, false), ERR_OK);
	return o;
}

static struct outcome
alone(const struct job_spec *job, const struct dataset *d, const struct dataset *v)
{
	const struct net_part whole = planned_training(&job->recipe, d, v->count);
	struct net *net;

	if (net_new_part(&net, &whole, &why))
		fail_msg("%s", why.text);
	struct outcome o = work(stepper_net(net), job, d, v);
	net_free(net);
	return o;
}

static struct leader *
lead(struct world *world, const struct document *doc, const struct job_spec *job,
    const struct dataset *d, const struct dataset *v, const unsigned shape[3])
{
	const struct train_config config = config_of(job);
	struct pieces pieces = {.net = NULL};
	struct leader_task task = {.recipe = &job->recipe,
	    .whole = planned_training(&job->recipe, d, v->count),
	    .how = train_update(&config, d, &pieces),
	    .seed = config.seed,
	    .threads = 1};
	struct leader *l;

	task.layout = layout_of(job, doc, shape[0], shape[1], shape[2], &pieces);
	if (leader_new(&l, world, &task, &why))
		fail_msg("%s", why.text);
	return l;
}

static struct outcome
together(struct world *world, const struct document *doc, const struct job_spec *job,
    const struct dataset *d, const struct dataset *v, const unsigned shape[3])
{
	struct leader *l = lead(world, doc, job, d, v, shape);
	struct outcome o = work(leader_stepper(l), job, d, v);

	leader_free(l);
	return o;
}

static void
same(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->w, b->w, a->n * sizeof(*a->w));
	assert_true(a->trained.loss == b->trained.loss && a->trained.steps == b->trained.steps &&
	    a->trained.right == b->trained.right);
	assert_true(a->score.loss == b->score.loss && a->score.right == b->score.right);
}

#define CNN \
	"\"layers\": [{\"type\": \"conv2d\", \"out\": 4, \"kernel\": 3, \"name\": \"c1\"}, " \
	"{\"type\": " \
	"\"relu\"}, {\"type\": \"maxpool2d\", \"kernel\": 2, \"name\": \"p\"}, {\"type\": " \
	"\"dropout\", " \
	"\"rate\": 0.2}, {\"type\": \"conv2d\", \"out\": 4, \"kernel\": 3, \"name\": \"c2\"}, " \
	"{\"type\": \"relu\"}, {\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 20, " \
	"\"name\": " \
	"\"l\"}, {\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": 10}], \"loss\": " \
	"\"cross_entropy\""
#define NORM \
	"\"layers\": [{\"type\": \"conv2d\", \"out\": 4, \"kernel\": 3, \"name\": \"c1\"}, " \
	"{\"type\": " \
	"\"batchnorm\"}, {\"type\": \"relu\"}, {\"type\": \"maxpool2d\", \"kernel\": 2, " \
	"\"name\": \"p\"}, " \
	"{\"type\": \"conv2d\", \"out\": 4, \"kernel\": 3, \"padding\": 1, \"name\": \"c2\"}, " \
	"{\"type\": \"add\", " \
	"\"inputs\": [\"c2\", \"p\"]}, {\"type\": \"batchnorm\", \"name\": \"n2\"}, {\"type\": " \
	"\"flatten\"}, {\"type\": " \
	"\"linear\", \"out\": 10}], \"loss\": \"cross_entropy\""
#define TIED \
	"\"layers\": [{\"type\": \"avgpool2d\", \"kernel\": 4}, {\"type\": \"flatten\"}, " \
	"{\"type\": \"linear\", " \
	"\"out\": 49, \"name\": \"a\"}, {\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": " \
	"49}, {\"type\": " \
	"\"tanh\"}, {\"type\": \"linear\", \"out\": 49, \"weights\": \"a\"}, {\"type\": " \
	"\"linear\", \"out\": 10}], " \
	"\"loss\": \"cross_entropy\""
/* Two groups of layers that share a weight, and low-rank products beside weights that stand. */
#define ADAPTED \
	"\"layers\": [{\"type\": \"avgpool2d\", \"kernel\": 4}, {\"type\": \"flatten\"}, " \
	"{\"type\": \"linear\", \"out\": 49, \"name\": \"a\"}, {\"type\": \"linear\", \"out\": " \
	"49, " \
	"\"name\": \"b\"}, {\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": 49, " \
	"\"lora\": {\"rank\": 2}}, {\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": " \
	"49, \"weights\": \"b\"}, {\"type\": \"linear\", \"out\": 49, \"weights\": \"a\"}, " \
	"{\"type\": \"linear\", \"out\": 49, \"weights\": \"b\"}, {\"type\": \"linear\", " \
	"\"out\": 10}], \"loss\": \"cross_entropy\""
#define CODER \
	"\"layers\": [{\"type\": \"flatten\"}, {\"type\": \"linear\", \"out\": 20}, {\"type\": " \
	"\"relu\"}, {\"type\": " \
	"\"linear\", \"out\": 16}, {\"type\": \"tanh\"}, {\"type\": \"linear\", \"out\": 784}], " \
	"\"loss\": \"mse\", " \
	"\"target\": \"input\""
#define SGD "\"optimizer\": {\"name\": \"sgd\", \"rate\": 0.05, \"momentum\": 0.9}"
#define ADAM "\"optimizer\": {\"name\": \"adam\", \"rate\": 0.005}"

static const struct document documents[] = {
    {.model = CNN,
	.local = "\"batch\": 12, \"epochs\": 1, " SGD,
	.rest = ", \"parallel\": {\"micro_batch\": 2}"},
    {.model = CNN,
	.local = "\"batch\": 12, \"epochs\": 2, \"prox\": 0.1, \"clip_norm\": 0.5, " ADAM,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 6}"},
    {.model = CNN,
	.local = "\"batch\": 24, \"epochs\": 1, \"clip_norm\": 0.5, " SGD,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 6}"},
    {.model = NORM,
	.local = "\"batch\": 12, \"epochs\": 1, " SGD,
	.rest = ", \"parallel\": {\"micro_batch\": 4}",
	.chained = true},
    {.model = TIED,
	.local = "\"batch\": 12, \"epochs\": 1, \"clip_norm\": 0.1, " SGD,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 3}",
	.lead = 3,
	.trail = 2},
    {.model = TIED,
	.local = "\"batch\": 12, \"epochs\": 1, " ADAM,
	.rest = ", \"parallel\": {\"micro_batch\": 2}",
	.lead = 3,
	.trail = 2},
    {.unnamed = true,
	.model = CODER,
	.local = "\"batch\": 12, \"epochs\": 1, " ADAM,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 2}, \"evaluate\": {\"by\": "
		"\"devices\", "
		"\"figures\": [\"regression\"]}"},
    {.model = CNN ", \"class_weights\": [1, 0, 2, 1, 1, 1, 1, 1, 1, 4], \"ignore_index\": 3",
	.local = "\"batch\": 12, \"epochs\": 1, " SGD,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 3}, \"evaluate\": {\"by\": "
		"\"devices\", "
		"\"figures\": [\"confusion\", \"top2\"]}"},
    /* What is shared stands still, or something between. */
    {.model = TIED,
	.local = "\"batch\": 12, \"epochs\": 1, \"clip_norm\": 0.1, " ADAM,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 3}, \"tensors\": "
		"{\"a.weight\": \"frozen\", \"*\": \"train\"}",
	.lead = 3,
	.trail = 2},
    {.model = CNN,
	.local = "\"batch\": 12, \"epochs\": 1, \"clip_norm\": 0.1, " SGD,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 6}, \"tensors\": "
		"{\"c1.*\": \"frozen\", \"c2.bias\": \"frozen\", \"*\": \"train\"}"},
    {.model = ADAPTED,
	.local = "\"batch\": 12, \"epochs\": 1, \"prox\": 0.1, \"clip_norm\": 0.1, " ADAM,
	.rest = ", \"parallel\": {\"micro_batch\": 2, \"groups\": 3}",
	.lead = 4,
	.trail = 4},
};
#define DOCUMENTS (sizeof(documents) / sizeof(documents[0]))

static void
shapes(void **state)
{
	static const unsigned all[][3] = {{1, 1, 0}, {2, 1, 0}, {3, 1, 0}, {4, 1, 0}, {5, 1, 0},
	    {2, 1, 1}, {4, 1, 1}, {1, 2, 0}, {1, 3, 0}, {2, 2, 0}, {2, 2, 1}, {3, 2, 1}};
	struct dataset d, v;
	struct outcome want[DOCUMENTS];

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 53, 0), ERR_OK);
	assert_int_equal(glyphs_make(&v, 1, 3, 150, 0), ERR_OK);
	for (size_t i = 0; i < DOCUMENTS; i++) {
		struct job_spec job = job_of(&documents[i]);
		want[i] = alone(&job, &d, &v);
		job_deinit(&job);
	}
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		struct local_world *w;
		if (local_world_new(&w, all[k][0] * all[k][1], &why))
			fail_msg("%s", why.text);
		for (size_t i = 0; i < DOCUMENTS; i++) {
			struct job_spec job = job_of(&documents[i]);
			const struct document *doc = &documents[i];
			bool fits =
			    !(all[k][1] > 1 && (job.recipe.local.groups < 2 || doc->chained)) &&
			    !(doc->lead > 0 && all[k][0] > 1 && !all[k][2]) &&
			    !(doc->lead > 0 && all[k][0] > 3);
			if (fits) {
				print_message("%u x %u%s: %zu\n", all[k][0], all[k][1],
				    all[k][2] ? " ring" : "", i);
				struct outcome o =
				    together(local_world_leader(w), doc, &job, &d, &v, all[k]);
				same(&want[i], &o);
				free(o.w);
			}
			job_deinit(&job);
		}
		local_world_free(w);
	}
	for (size_t i = 0; i < DOCUMENTS; i++)
		free(want[i].w);
	dataset_deinit(&d);
	dataset_deinit(&v);
}

/* Wanted when so many batches were done. */
static bool
is_enough(void *context, uint64_t done, uint64_t all)
{
	(void)all;
	return done >= *(const uint64_t *)context;
}

/* An evaluation that is broken off: nobody waits for the rest, and the world takes another task. */
static void
broken_off(void **state)
{
	static const unsigned all[][3] = {{1, 2, 0}, {3, 1, 0}, {2, 1, 1}, {2, 2, 0}};
	struct job_spec job = job_of(&documents[7]);
	struct dataset d, v;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 53, 0), ERR_OK);
	assert_int_equal(glyphs_make(&v, 1, 3, 150, 0), ERR_OK);
	struct outcome want = alone(&job, &d, &v);
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		struct local_world *w;
		if (local_world_new(&w, all[k][0] * all[k][1], &why))
			fail_msg("%s", why.text);
		struct world *world = local_world_leader(w);
		for (uint64_t after = 0; after < 9; after += 4) {
			struct train_config config = config_of(&job);
			struct leader *l = lead(world, &documents[7], &job, &d, &v, all[k]);
			struct train_score score;
			config.stop = is_enough;
			config.context = &after;
			assert_int_equal(
			    train_evaluate_while(leader_stepper(l), &v, &config, &score, &why),
			    ERR_CLOSED);
			leader_free(l);
		}
		struct outcome o = together(world, &documents[7], &job, &d, &v, all[k]);
		same(&want, &o);
		free(o.w);
		local_world_free(w);
	}
	free(want.w);
	job_deinit(&job);
	dataset_deinit(&d);
	dataset_deinit(&v);
}

/* So few examples that a step, which the job divides, is one piece: for one rank. */
static void
few(void **state)
{
	static const struct document all[] = {
	    {.model = CNN,
		.local = "\"batch\": 12, \"epochs\": 5, \"optimizer\": {\"name\": \"sgd\", "
			 "\"rate\": 0.05, \"weight_decay\": 0.01}",
		.rest = ", \"parallel\": {\"micro_batch\": 4, \"groups\": 3}"},
	    {.model = CNN,
		.local = "\"batch\": 12, \"epochs\": 5, " SGD,
		.rest = ", \"parallel\": {\"micro_batch\": 4}"},
	    {.model = TIED,
		.local = "\"batch\": 12, \"epochs\": 5, " SGD,
		.rest = ", \"parallel\": {\"micro_batch\": 4}"},
	    {.model = TIED,
		.local = "\"batch\": 12, \"epochs\": 5, \"clip_norm\": 0.1, " ADAM,
		.rest = ", \"parallel\": {\"micro_batch\": 4}"},
	    {.model = NORM,
		.local = "\"batch\": 12, \"epochs\": 5, " ADAM,
		.rest = ", \"parallel\": {\"micro_batch\": 4}"},
	};
	const unsigned one[3] = {1, 1, 0};
	struct local_world *w;
	struct dataset d, v;

	(void)state;
	assert_int_equal(glyphs_make(&d, 1, 2, 3, 0), ERR_OK);
	assert_int_equal(glyphs_make(&v, 1, 3, 10, 0), ERR_OK);
	if (local_world_new(&w, 1, &why))
		fail_msg("%s", why.text);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct job_spec job = job_of(&all[i]);
		struct outcome want = alone(&job, &d, &v);
		struct outcome o = together(local_world_leader(w), &all[i], &job, &d, &v, one);
		print_message("few: %zu\n", i);
		same(&want, &o);
		free(want.w);
		free(o.w);
		job_deinit(&job);
	}
	local_world_free(w);
	dataset_deinit(&d);
	dataset_deinit(&v);
}

static enum err
open_end(struct link **out, void *context, struct why *reason)
{
	(void)reason;
	*out = context;
	return ERR_OK;
}

/* A rank that gives up frees its parcels; the others hear of it, whatever they go on to post. */
static void
given_up(void **state)
{
	struct link_local *links;
	struct courier *c[2];
	struct parcel *p = calloc(1, sizeof(*p)), waits = {.peer = 1};
	char data[4] = "";

	(void)state;
	assert_int_equal(link_local_new(&links, 2), ERR_OK);
	for (unsigned r = 0; r < 2; r++) {
		const struct courier_world w = {open_end, link_local_end(links, r)};
		assert_int_equal(courier_new(&c[r], &w, &why), ERR_OK);
	}
	struct world world = {.courier = c[0]};
	courier_post(c[1], p);
	courier_abort(c[1]);
	assert_int_equal(courier_wait(c[1], p), ERR_CLOSED);
	free(p);
	courier_post(c[0], &waits);
	assert_int_equal(courier_wait(c[0], &waits), ERR_CLOSED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
		    world_send_all(&world, 2, PARCEL_TEXT, data, sizeof(data)), ERR_CLOSED);
	courier_free(c[0]);
	courier_free(c[1]);
	link_local_free(links);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shapes),
	    cmocka_unit_test(few),
	    cmocka_unit_test(broken_off),
	    cmocka_unit_test(given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
