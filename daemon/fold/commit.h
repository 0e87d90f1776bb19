#ifndef COMMIT_H
#define COMMIT_H
#include "fold.h"

/* The one transaction that ends a round: its row, figures and metrics, the new model's row, the next round's, the signed record, and
 * the job's state. */

/* A store work on a struct fold whose `out` is filled in and whose files are on the disk. ERR_TIMEOUT: its model was removed at this
 * moment, and the round is to be folded again. */
ERR_MUST_USE enum err commit_work(struct store_db *db, void *fold, struct why *why);

/* What its row says beside what was folded: the devices' figures, bytes and times. */
void commit_fill(struct fold *w);

#endif
