#ifndef MEASURES_FILE_H
#define MEASURES_FILE_H
#include "measures.h"

/* Seconds and links that were measured before, of the same network on as many ranks, in the user's cache: $XDG_CACHE_HOME or ~/.cache,
 * rivulet/sites. A file that is missing, damaged or of another version counts for nothing. Blocks on the disk. */
bool measures_file_load(struct measures *m, const struct measures_want *want);
void measures_file_save(const struct measures *m, const struct measures_want *want);

#endif
