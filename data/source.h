#ifndef SOURCE_H
#define SOURCE_H
#include "csv.h"
#include "shard.h"

/*
 * Where labelled examples lie on the disk: what [data NAME] says of IDX and CSV files, on the coordinator and on devices alike. Files
 * are regular ones of 1 to DATASET_BYTES_MAX bytes; anything else (a FIFO, a directory, a device) is an error at once.
 */
struct source {
	const char *images, *labels; /* IDX; images NULL: CSV */
	const char *path; /* CSV */
	struct csv_form csv;
	const char *shape; /* of a line's features, "3, 32, 32"; NULL or "": a line is flat */
	const struct shard *shard; /* which of the examples; NULL: all */
};

/* Reads them. Files are mapped, and only the shard's examples are kept. Blocks on the disk. ERR_NOTFOUND if a file is missing; `why`
 * names the file at fault, once. The caller deinits *out. */
ERR_MUST_USE enum err source_load(struct dataset *out, const struct source *from, struct why *why);

#endif
