#ifndef DOWNLOAD_H
#define DOWNLOAD_H
#include "handle_inside.h"
#include "transport.h"

/*
 * Downloads a file of the coordinator's to a part file on disk, from the mirror if there is one, else from the coordinator. An interrupted
 * download goes on where it stopped, also if an earlier process began it.
 */
struct download {
	struct rivulet *r;
	const char *what; /* in events: "model", "difference" */
	char path[192]; /* of the URL */
	uint64_t bytes; /* the length that the file must have */
	bool once; /* a complete file that is wrong is not downloaded a second time */
	/* Is the complete part file right? ERR_CORRUPT: it is emptied. */
	enum err (*check)(struct download *d, struct why *why);
	struct transport_sink sink; /* the caller sets fd, max, and hash or NULL */
	uint64_t began_at; /* sink.at before the current request */
	uint64_t best; /* the largest sink.at so far */
};

/* ERR_AGAIN cancelled; ERR_CORRUPT the downloaded file is wrong; ERR_NOTFOUND, ERR_CLOSED, ERR_IO, ... */
ERR_MUST_USE enum err download_run(struct download *d, struct why *why);

#endif
