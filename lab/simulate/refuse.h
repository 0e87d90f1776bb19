#ifndef REFUSE_H
#define REFUSE_H
#include "play.h"

/* Can this be simulated? ERR_UNSUPPORTED, ERR_INVALID or ERR_NOTFOUND with what cannot, in words. Pure. */
ERR_MUST_USE enum err simulate_refuse(const struct simulate_options *o, struct why *why);

#endif
