#ifndef SOURCE_H
#define SOURCE_H
#include "csv.h"

struct shard;

/*
 * The one door to files of examples: what [data NAME] names, on the coordinator, on devices and for `rivulet train`. Files are regular
 * ones of 1 to DATASET_BYTES_MAX bytes; anything else (a FIFO, a directory, a device) is an error at once.
 *
 * Values of a plain file beyond SOURCE_COPY_MAX bytes stay in it, mapped, and of a shard only a list of rows is made; what is smaller or
 * packed by gzip, and tables, are read to memory, of a shard its own examples alone. A mapped file must not be cut short or written
 * while it is used: replace it by renaming another to its name.
 */
#define SOURCE_COPY_MAX ((uint64_t)64 << 20)

/* How a table is to be read. */
struct csv_form source_csv(const struct data_source *from, const struct shard *shard);

/* Reads the examples of the shard (NULL: all). Formats glyphs and external are not files: ERR_UNSUPPORTED. Blocks on the disk.
 * ERR_NOTFOUND if a file is missing; `why` names the file at fault, once. The caller deinits *out. */
ERR_MUST_USE enum err source_load(struct dataset *out, const struct data_source *from,
    const struct shard *shard, struct why *why);

#endif
