#ifndef ORPHAN_H
#define ORPHAN_H

struct manifest;
struct spool;
struct store;

/*
 * Accepted names whose commit failed: nobody was told 201, and no row is there that names them. They are not removed at once: SQLite's
 * log may hold the failed transaction whole, and a start after a kill would find its row. Once the database has written something
 * else over it the row cannot come back; then the files go and give their quota back.
 */

/* The commit of this delta failed after spool_accept. Without memory for it the file stays until the next start. Any thread. */
void spool_orphan_note(struct spool *s, const struct manifest *m);
/* The database has written since: queues the removal of those noted that have no row. Any thread; does not block. */
void spool_orphan_release(struct spool *s, struct store *store);

#endif
