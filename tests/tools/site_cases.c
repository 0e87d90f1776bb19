/* site_cases local|mpi PIPELINE REPLICAS RING(0|1) OUT DIR...: trains the task in each DIR (training/directory.h) by the ranks of one world of that
 * shape, and leaves what `rivulet trainer` leaves in DIR in OUT/NAME, NAME being DIR's last part. Cuts are as even as the network allows; a
 * ring's outer stages reach the layers that share a weight. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cuts.h"
#include "dataset.h"
#include "local_world.h"
#include "member_loop.h"
#include "pieces.h"
#include "planned.h"
#include "result.h"
#include "training.h"
#ifdef SITE_MPI
#include "link_mpi.h"
#endif

struct shape {
	unsigned pipeline, replicas;
	bool ring;
};

static void
fail(const char *what, const struct why *why)
{
	fprintf(stderr, "site_cases: %s: %s\n", what, why->text);
	exit(1);
}

/* The first layer whose weight is shared, and the first that uses it. */
static void
ties(const struct net_spec *net, uint32_t *lender, uint32_t *sharer)
{
	*sharer = 0;
	for (uint32_t i = 0; i < net->layer_count && *sharer == 0; i++)
		if (net->layers[i].tied > 0) {
			*sharer = i;
			*lender = net->layers[i].tied - 1;
		}
}

static void
cut(struct layout *l, const struct net_spec *net)
{
	unsigned stages = layout_last(l) + 1;
	uint32_t layers = (uint32_t)net->layer_count, lender = 0, sharer = 0, from = 0, to = layers;
	struct cuts_crossing c;

	ties(net, &lender, &sharer);
	if (sharer > 0 && stages > 1) {
		from = lender + 1;
		to = sharer;
	}
	l->cut[stages] = layers;
	for (unsigned s = 1; s < stages; s++) {
		l->cut[s] = sharer > 0
		    ? from + (to - from) * (s - 1) / (stages > 2 ? stages - 2 : 1)
		    : layers * s / stages;
		if (l->cut[s] <= l->cut[s - 1])
			l->cut[s] = l->cut[s - 1] + 1;
		while (l->cut[s] < layers && cuts_crossed(net, l->cut[s], &c))
			l->cut[s]++;
	}
}

static struct leader_task
task_of(const struct training_in *in, const struct shape *shape)
{
	struct pieces pieces = {.parts = 1, .groups = 1};
	const struct train_config config = {
	    .local = &in->recipe->local, .data = &in->recipe->data, .round = in->round};
	struct leader_task t = {.recipe = in->recipe,
	    .whole = planned_training(in->recipe, in->train, in->validation->count),
	    .how = train_update(&config, in->train, &pieces),
	    .seed = training_seed(in->seed, in->round, in->device),
	    .threads = 1};

	t.layout = (struct layout){.pipeline = shape->pipeline,
	    .replicas = shape->replicas,
	    .ring = shape->ring,
	    .pieces = pieces.parts,
	    .run = pieces_run(&pieces)};
	cut(&t.layout, &in->recipe->net);
	return t;
}

static void
train(struct world *world, const struct shape *shape, const char *directory, const char *to)
{
	struct directory d, out;
	struct training_out result;
	struct leader *leader;
	struct why why = {""};

	if (directory_open(&d, directory, &why))
		fail(directory, &why);
	out = d;
	out.path = to;
	struct training_in in = directory_task(&d);
	const struct leader_task task = task_of(&in, shape);
	if (leader_new(&leader, world, &task, &why))
		fail(directory, &why);
	const struct stepper stepper = leader_stepper(leader);
	in.stepper = &stepper;
	in.take = result_take;
	in.taker = &out;
	if (training_run(&in, &result, &why) || result_report(&out, &result, &why))
		fail(directory, &why);
	training_out_deinit(&result);
	leader_free(leader);
	directory_close(&d);
}

static void
lead(struct world *world, const struct shape *shape, const char *to, int count, char **directories)
{
	for (int i = 0; i < count; i++) {
		const char *name = strrchr(directories[i], '/');
		char path[4096];
		int n = snprintf(path, sizeof(path), "%s/%s", to, name ? name + 1 : directories[i]);
		if (n < 0 || n >= (int)sizeof(path) || mkdir(path, 0700))
			exit(1);
		train(world, shape, directories[i], path);
	}
}

static void
by_threads(const struct shape *shape, int argc, char **argv)
{
	struct local_world *w;
	struct why why = {""};

	if (local_world_new(&w, shape->pipeline * shape->replicas, &why))
		fail("threads", &why);
	lead(local_world_leader(w), shape, argv[5], argc - 6, argv + 6);
	local_world_free(w);
}

static void
by_mpi(const struct shape *shape, int argc, char **argv)
{
#ifdef SITE_MPI
	const struct courier_world mpi = {link_mpi_open, NULL};
	struct world world = {.courier = NULL};
	struct why why = {""};

	if (courier_new(&world.courier, &mpi, &why))
		fail("mpi", &why);
	if (courier_rank(world.courier) > 0) {
		if (member_loop_run(world.courier))
			exit(1);
	} else {
		lead(&world, shape, argv[5], argc - 6, argv + 6);
		world_end(&world);
	}
	courier_free(world.courier);
#else
	(void)shape;
	(void)argc;
	(void)argv;
	exit(77);
#endif
}

int
main(int argc, char **argv)
{
	if (argc < 7)
		return 2;
	const struct shape shape = {
	    (unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), atoi(argv[4]) != 0};
	if (strcmp(argv[1], "mpi") == 0)
		by_mpi(&shape, argc, argv);
	else
		by_threads(&shape, argc, argv);
	return 0;
}
