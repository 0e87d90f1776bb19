#ifndef DOWNLOAD_H
#define DOWNLOAD_H
#include "handle_inside.h"
#include "transport.h"

/*
 * One file that the coordinator serves, into a part on disk: from the mirror if there is one, else from the coordinator. A broken
 * download goes on where it stopped, also one that an earlier process began.
 */
struct download {
	struct rivulet *r;
	const char *what; /* in events: "model", "difference" */
	char path[192]; /* of the URL */
	uint64_t bytes; /* it must have */
	bool once; /* what comes complete and is wrong is not asked for again */
	/* Is the complete part right? ERR_CORRUPT: it is emptied. */
	enum err (*check)(struct download *d, struct why *why);
	struct transport_sink sink; /* the caller sets fd, max, and hash or NULL */
	uint64_t began_at; /* the sink before the request in hand */
	uint64_t best; /* the farthest it ever came */
};

/* ERR_AGAIN cancelled; ERR_CORRUPT what comes is wrong; ERR_NOTFOUND, ERR_CLOSED, ERR_IO, ... */
ERR_MUST_USE enum err download_run(struct download *d, struct why *why);

#endif
