#ifndef ORPHAN_H
#define ORPHAN_H

struct manifest;
struct spool;
struct store;

/*
 * Orphans: files with an accepted name whose commit failed, so that no device was told 201 and no row names them. An orphan is not removed
 * at once: SQLite's log may hold the failed transaction whole, and a start after a kill would find its row. Once the database has committed
 * something else, the row cannot come back; then the file is removed and its quota given back.
 */

/* Notes that the commit of a delta failed after spool_accept. Without memory for the note the file stays until the next start. Any
 * thread. */
void spool_orphan_note(struct spool *s, const struct manifest *m);
/* The database has written since: queues the removal of those noted that have no row. Any thread; does not block. */
void spool_orphan_release(struct spool *s, struct store *store);

#endif
