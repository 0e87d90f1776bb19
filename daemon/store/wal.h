#ifndef WAL_H
#define WAL_H
#include <stdbool.h>

#include "err.h"

/*
 * SQLite reads its write-ahead log up to the first frame with a wrong checksum and takes that frame for the end, as it must after
 * a crash. A frame damaged later, in the middle, would so undo every commit behind it without a word. store_wal_check looks at the
 * log before SQLite does. Format: sqlite.org/fileformat2.html, section 4. Nobody may be writing.
 */

/* ERR_CORRUPT if a frame with a wrong checksum belongs to a commit, or stands before one, that was durable (frames of a later commit
 * follow), or if the log's header is damaged. *torn: a frame of the last commit has a wrong checksum, which is normal after a power cut
 * (the commit was not acknowledged) and damage otherwise. A log that is missing or empty is sound. */
ERR_MUST_USE enum err store_wal_check(const char *path, bool *torn, struct why *why);

#endif
