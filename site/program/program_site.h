#ifndef PROGRAM_SITE_H
#define PROGRAM_SITE_H
#include "option.h"
#include "site.h"

/* The subcommands of `rivulet-site`, and what they share. */
enum program_exit { PROGRAM_OK = 0, PROGRAM_FAILED = 1, PROGRAM_USAGE = 2 };

int program_run_main(int argc, char **argv);
int program_rank_main(int argc, char **argv);
int program_plan_main(int argc, char **argv);
int program_train_main(int argc, char **argv);

/* Parses a subcommand's options; prints what is wrong, or what --help asks for. False: leave with *rc. */
bool program_options(struct option_words *words, const struct option_entry *table,
    const struct option_usage *usage, int argc, char **argv, int *rc);
/* How many ranks, and how they divide a task, as options say. */
struct program_shape {
	const char *ranks, *pipeline, *replicas, *threads;
	struct site site; /* set by program_shape_read */
	char texts[4][32];
	const char *options[6]; /* the same, for another program; NULL-terminated */
};
#define PROGRAM_SHAPE_OPTIONS(s) \
	{"ranks", 0, "N", "as how many ranks (default: 1)", &(s).ranks, NULL}, \
	    {"pipeline-parallel", 0, "P", \
		"stages that the layers are divided into (default: as planned)", &(s).pipeline, \
		NULL}, \
	    {"data-parallel", 0, "R", "replicas that divide the batches (default: as planned)", \
		&(s).replicas, NULL}, \
	{ \
		"threads", 0, "T", "of each rank (default: the machine's, divided)", &(s).threads, \
		    NULL \
	}
#define PROGRAM_MPI_OPTION(flag) \
	{ \
		"mpi", 0, NULL, "ranks are processes of this host, by mpirun; else threads", NULL, \
		    &(flag) \
	}
ERR_MUST_USE enum err program_shape_read(struct program_shape *s, struct why *why);

/* Prints "rivulet-site: reason" and returns PROGRAM_FAILED, or PROGRAM_USAGE for ERR_INVALID. */
int program_fail(enum err e, const struct why *why);
void program_say(const char *reason);

#endif
