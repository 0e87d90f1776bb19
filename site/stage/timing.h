#ifndef TIMING_H
#define TIMING_H
#include "net.h"

/* How long passes over parts of a network take here, on drawn examples. */
struct timing {
	const struct net_part *whole;
	unsigned threads;
	unsigned rank; /* pretend.h */
	/* Layers [first, last), and with tail_first above 0 [tail_first, end) of the network, which shares a weight with these. */
	size_t first, last, tail_first;
};
struct timing_passes {
	double forward_s, back_s;
};
/* Of each range: the median of some passes of max_batch examples. ERR_NOMEM, ...: as net_new_part. */
ERR_MUST_USE enum err timing_take(
    const struct timing *t, struct timing_passes out[NET_RANGES], struct why *why);

/* Bytes that one of `ranks` processes of this machine, or threads of this process, may take. */
uint64_t timing_memory(unsigned ranks, bool threads);

#endif
