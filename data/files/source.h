#ifndef SOURCE_H
#define SOURCE_H
#include "csv.h"

struct shard;

/*
 * Reads the files of examples that [data NAME] names: the only way to them on the coordinator, on devices and for `rivulet train`. Files
 * are regular and have 1 to DATASET_BYTES_MAX bytes; anything else (a FIFO, a directory, a device) is an error at once.
 *
 * A plain file of more than SOURCE_COPY_MAX bytes stays mapped, and a shard of it is only a list of rows. Smaller files, gzip files and
 * tables are read to memory, of a shard its own examples alone. A mapped file must not be cut short or written while in use: replace such a
 * file by renaming another one to its name.
 */
#define SOURCE_COPY_MAX ((uint64_t)64 << 20)

/* Reads the examples of the shard (NULL: all). Formats glyphs and external are not files: ERR_UNSUPPORTED. Blocks on the disk.
 * ERR_NOTFOUND if a file is missing; `why` names the file at fault, once. The caller deinits *out. */
ERR_MUST_USE enum err source_load(struct dataset *out, const struct data_source *from,
    const struct shard *shard, struct why *why);

#endif
