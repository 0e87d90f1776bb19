#ifndef MEASURED_H
#define MEASURED_H
#include "fold.h"

/*
 * What devices measured of the models that their tasks started from, as one figure of a round. In a synchronous job that is the
 * round's base. In a buffered one each delta may have started from another model: the figure is then of the newest base that as many
 * as the quorum have measured by now, in whatever round their deltas were folded, and no figure is made of one twice.
 */

/* One report more. Examples: that its device trained on. ERR_NOMEM. */
ERR_MUST_USE enum err measured_add(struct fold *w, const struct store_accept *a, uint64_t examples);
/* Of a buffered job, once its deltas are read: takes the reports of that base, and names it in out.row.measured. */
ERR_MUST_USE enum err measured_choose(struct fold *w, struct store_db *db);
/* The metric, into out.row. ERR_NOMEM. */
ERR_MUST_USE enum err measured_end(struct fold *w, struct why *why);

#endif
