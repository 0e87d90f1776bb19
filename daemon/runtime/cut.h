#ifndef CUT_H
#define CUT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * Files that are mapped may be cut by others, or their disk may fail: touching what is gone is SIGBUS, which would end the program. From
 * cut_survive on such a page is one of zeros instead. Whoever has read what matters asks afterwards whether that happened (cut_hit), and
 * whether the file is still as it was (models_unchanged). For programs that map files for long; once, before any thread.
 */
void cut_survive(void);
/* How many pages were replaced so far: to be noted before a file is mapped. Any thread, as below. */
unsigned long cut_count(void);
/* Was one of these bytes' pages replaced since? True also when nobody knows, for so many were. */
bool cut_hit(const void *data, size_t len, unsigned long since);

#endif
