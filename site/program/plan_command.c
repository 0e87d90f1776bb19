#include "launch.h"
#include "program_site.h"

static bool
never(void *context)
{
	(void)context;
	return false;
}

static enum err
by_processes(struct program_shape *shape, const char *job, struct why *why)
{
	const struct launch launch = {shape->site.ranks, shape->options};
	size_t n = 0;

	while (shape->options[n])
		n++;
	shape->options[n] = "--plan";
	return launch_wait(&launch, job, &(struct serve_wish){never, NULL}, why);
}

int
program_plan_main(int argc, char **argv)
{
	struct program_shape shape = {.ranks = "1"};
	bool mpi = false;
	const struct option_entry table[] = {
	    PROGRAM_SHAPE_OPTIONS(shape), PROGRAM_MPI_OPTION(mpi), {.name = NULL}};
	const struct option_usage usage = {
	    .usage = "plan [--ranks N] [--mpi] [--pipeline-parallel P] [--data-parallel R] "
		     "[--threads T] JOBFILE",
	    .about = "Measures layers, links and memory, and says how N ranks would divide the "
		     "job: fewer "
		     "of\nthem where more would not gain a tenth. MiB: what a rank takes.",
	    .least = 1,
	    .most = 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!program_options(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = program_shape_read(&shape, &why);
	if (!e)
		e = mpi ? by_processes(&shape, words.words[0], &why)
			: site_show_plan(&shape.site, words.words[0], &why);
	return e ? program_fail(e, &why) : PROGRAM_OK;
}
