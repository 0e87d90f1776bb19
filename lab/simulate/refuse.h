#ifndef REFUSE_H
#define REFUSE_H
#include "play.h"

/* Can a job with these options be simulated? ERR_UNSUPPORTED, ERR_INVALID or ERR_NOTFOUND, and why says what cannot. Pure. */
ERR_MUST_USE enum err simulate_refuse(const struct simulate_options *o, struct why *why);

#endif
