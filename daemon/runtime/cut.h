#ifndef CUT_H
#define CUT_H
#include <stdbool.h>
#include <stddef.h>

/*
 * A mapped file may be cut by another process, or its disk may fail: touching a page that is gone raises SIGBUS, which would end the
 * program. After cut_survive the page is replaced by zeros instead. A reader of values that must not be wrong asks afterwards whether that
 * happened (cut_hit), and whether the file is still as it was (models_unchanged). For programs that keep files mapped; once, before any
 * thread.
 */
void cut_survive(void);
/* How many pages were replaced so far: to be noted before a file is mapped. Any thread. */
unsigned long cut_count(void);
/* Was a page of these bytes replaced since cut_count was `since`? True also if more pages were replaced than are remembered. Any thread. */
bool cut_hit(const void *data, size_t len, unsigned long since);

#endif
