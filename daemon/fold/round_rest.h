#ifndef ROUND_REST_H
#define ROUND_REST_H
#include "fold.h"

/* What a round leaves behind. With the folder's lock of commits, as no state may be on its way to a row. */

/* After the commit: its deltas, older states and models. What fails is logged. */
void round_rest_clear(struct fold *w);
/* States that jobs which are over named. */
void round_rest_forget(struct engine *g);

#endif
