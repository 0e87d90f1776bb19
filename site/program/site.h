#ifndef SITE_H
#define SITE_H
#include "builtin.h"
#include "leader.h"

/* A training or evaluation by a site's ranks, in the place of training_run. */
struct site {
	unsigned ranks;
	unsigned pipeline, replicas; /* what the owner fixed; 0: free */
	unsigned threads; /* of a rank; 0: the machine's, divided among the ranks */
	struct world *world; /* NULL: of threads, made for each task */
};

/* As training_run; also refused is what ranks would compute otherwise than one device, with the key's name. */
ERR_MUST_USE enum err site_run(const struct site *site, const struct training_in *in,
    struct training_out *out, struct why *why);
/* The task of a world, but for its layout; and its pieces, if it trains. */
struct pieces;
struct leader_task site_task(
    const struct site *site, const struct training_in *in, struct pieces *pieces);
/* What the site's ranks cannot do, however they divide it: ERR_UNSUPPORTED, with the key's name. */
ERR_MUST_USE enum err site_suits(
    const struct site *site, const struct training_in *in, struct why *why);
/* Reads the job file and prints how the site's ranks would train it. ERR_LIMIT: no division fits. */
ERR_MUST_USE enum err site_show_plan(const struct site *site, const char *job, struct why *why);

#endif
