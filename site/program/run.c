#include <signal.h>

#include "launch.h"
#include "program_site.h"
#include "serve.h"
#include "site.h"
#include "site_offer.h"

static enum err
train(void *context, const struct training_in *in, struct training_out *out, struct why *why)
{
	return site_run(context, in, out, why);
}

static enum err
serve(
    const struct program_shape *shape, const struct option_words *words, bool mpi, struct why *why)
{
	struct site site = shape->site;
	struct launch launch = {site.ranks, shape->options};
	const struct serve s = {.train = train,
	    .task = mpi ? launch_task : NULL,
	    .context = mpi ? (void *)&launch : (void *)&site,
	    .say = program_say};

	return words->count == 1 ? serve_task(&s, words->words[0], why) : serve_agent(&s, why);
}

int
program_run_main(int argc, char **argv)
{
	struct program_shape shape = {.ranks = "1"};
	bool mpi = false, offer = false;
	const struct option_entry table[] = {PROGRAM_SHAPE_OPTIONS(shape), PROGRAM_MPI_OPTION(mpi),
	    {"offer", 0, NULL, "print what it can do, as an agent asks", NULL, &offer},
	    {.name = NULL}};
	const struct option_usage usage = {
	    .usage = "run [--ranks N] [--mpi] [--pipeline-parallel P] [--data-parallel R] "
		     "[--threads T] DIR|--offer",
	    .about =
		"Does a task of a built-in job in DIR, where an agent has laid it out, by N ranks "
		"that divide\nthe model or the batches, with one device's bits:\n"
		"[trainer builtin] exec = /usr/bin/rivulet-site run --ranks 4. Without DIR it "
		"stays "
		"and is\ngiven tasks (persistent = yes).",
	    .least = 0,
	    .most = 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!program_options(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = program_shape_read(&shape, &why);
	if (!e && offer)
		return site_offer_print(&shape.site);
	serve_catch_signals();
	/* An mpirun that is gone is seen by what a write returns. */
	signal(SIGPIPE, SIG_IGN);
	if (!e)
		e = serve(&shape, &words, mpi, &why);
	return e ? program_fail(e, &why) : PROGRAM_OK;
}
