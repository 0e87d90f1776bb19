#ifndef ROUND_RECORD_H
#define ROUND_RECORD_H
#include "fold.h"

/* Appends the record of a folded round inside the transaction that commits it: what its model was made from, so that anyone
 * with the deltas can make it again. Its details are the accepted manifests in device-id order. */
ERR_MUST_USE enum err round_record_append(
    struct store_db *db, const struct fold *w, struct why *why);

#endif
