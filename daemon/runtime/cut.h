#ifndef CUT_H
#define CUT_H

/*
 * Files that are mapped may be cut by others, or their disk may fail: touching what is gone is SIGBUS, which would end the program. From
 * cut_survive on such a page is one of zeros instead. Whoever has read what matters looks afterwards whether the file is still as it
 * was (models_unchanged). For programs that map files for long; once, before any thread.
 */
void cut_survive(void);

#endif
