#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link_mpi.h"
#include "member_loop.h"
#include "program_site.h"
#include "serve.h"
#include "site.h"

/* A rank that mpirun started. Rank 0 leads, and is told to finish by a byte on its standard input, or its end. */

static bool
hears_finish(void *context)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	(void)context;
	return serve_is_ending() || poll(&p, 1, 0) > 0;
}

static enum err
train(void *context, const struct training_in *in, struct training_out *out, struct why *why)
{
	struct training_in own = *in;

	own.stop = hears_finish;
	return site_run(context, &own, out, why);
}

static enum err
lead(struct site *site, const char *word, bool plan, struct world *world, struct why *why)
{
	const struct serve s = {.train = train, .context = site, .say = program_say};

	site->world = world;
	enum err e = plan ? site_show_plan(site, word, why) : serve_task(&s, word, why);
	world_end(world);
	return e;
}

int
program_rank_main(int argc, char **argv)
{
	struct program_shape shape = {.ranks = "1"};
	bool plan = false;
	const struct option_entry table[] = {PROGRAM_SHAPE_OPTIONS(shape),
	    {"plan", 0, NULL, "the word is a job file, whose plan is printed", NULL, &plan},
	    {.name = NULL}};
	const struct option_usage usage = {.usage = "rank [OPTIONS] DIR",
	    .about = "A rank that mpirun started (rivulet-site run --mpi).",
	    .least = 1,
	    .most = 1};
	const struct courier_world mpi = {link_mpi_open, NULL};
	struct option_words words;
	struct world world = {.courier = NULL};
	struct why why = {""};
	int rc;

	if (!program_options(&words, table, &usage, argc, argv, &rc))
		return rc;
	serve_catch_signals();
	enum err e = program_shape_read(&shape, &why);
	if (!e)
		e = courier_new(&world.courier, &mpi, &why);
	if (!e) {
		shape.site.ranks = courier_ranks(world.courier);
		e = courier_rank(world.courier) > 0
		    ? member_loop_run(world.courier)
		    : lead(&shape.site, words.words[0], plan, &world, &why);
	}
	courier_free(world.courier);
	return e ? program_fail(e, &why) : PROGRAM_OK;
}
