#ifndef LINK_LOCAL_H
#define LINK_LOCAL_H
#include "link.h"

/* A world of threads in one process. Nothing is buffered: a send is complete when the body is in the receiver's memory. */
struct link_local;
ERR_MUST_USE enum err link_local_new(struct link_local **out, unsigned ranks);
/* After all links of the world are closed. */
void link_local_free(struct link_local *l);
/* Ends the world for all. */
void link_local_abort(struct link_local *l);
/* The end of one rank, which link_calls.close ends. After an abort all calls give ERR_CLOSED. */
struct link *link_local_end(struct link_local *l, unsigned rank);

#endif
