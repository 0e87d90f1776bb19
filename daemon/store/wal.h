#ifndef WAL_H
#define WAL_H
#include <stdbool.h>

#include "err.h"

/*
 * SQLite reads its write-ahead log up to the first frame that does not check and takes that for the end, as it must after a
 * crash. A frame damaged later, in the middle, would so undo every commit behind it without a word. This looks at the log
 * before SQLite does. Format: sqlite.org/fileformat2.html, section 4. Nobody may be writing.
 */

/* ERR_CORRUPT if commits stand behind a frame that does not check, or the log's header is damaged. *torn: the log's last commit
 * does not check, which is normal after a power cut (it was not acknowledged) and damage otherwise. A log that is not there, or
 * empty, is sound. */
ERR_MUST_USE enum err store_wal_check(const char *path, bool *torn, struct why *why);

#endif
