#ifndef NEXT_H
#define NEXT_H
#include "handle_inside.h"

/* rivulet_next; r->task is then what the caller sees. */
int next_task(struct rivulet *r, double timeout_s);

#endif
