#ifndef FIGURES_VIEW_H
#define FIGURES_VIEW_H
#include "buf.h"

struct counts;

/* A round's figures as the API shows them (docs/api.md, FIGURES), kept with the round. */
#define FIGURES_VIEW_MAX (1u << 20)

/* ERR_NOMEM. */
ERR_MUST_USE enum err figures_view_print(struct buf *out, const struct counts *counts);

#endif
