#ifndef MEMBER_LOOP_H
#define MEMBER_LOOP_H
#include "courier.h"

/* A rank other than 0 at work, until the leader ends the world. Blocks. ERR_CLOSED: the world was ended otherwise. */
ERR_MUST_USE enum err member_loop_run(struct courier *c);

#endif
