#ifndef WORLD_H
#define WORLD_H
#include "courier.h"

/* A world as its rank 0 knows it: orders to the other ranks (orders.h), and what they answer. All block. Errors are the courier's. */
struct order;
struct world {
	struct courier *courier;
	uint64_t orders[LINK_RANKS_MAX]; /* to each rank so far; zeros at first */
	uint64_t numbers; /* steps and evaluations so far */
};

ERR_MUST_USE enum err world_order(struct world *w, unsigned rank, const struct order *o);
/* To ranks 1 to ranks - 1, as the next. */
ERR_MUST_USE enum err world_order_all(struct world *w, unsigned ranks, const struct order *o);
/* What belongs to the rank's last order. */
ERR_MUST_USE enum err world_send(
    struct world *w, unsigned rank, enum parcel_kind kind, const void *data, size_t bytes);
ERR_MUST_USE enum err world_send_all(
    struct world *w, unsigned ranks, enum parcel_kind kind, const void *data, size_t bytes);
/* `part` tells apart what a rank answers in several parcels. ERR_CORRUPT: not so many bytes. */
ERR_MUST_USE enum err world_receive(
    struct world *w, unsigned rank, enum parcel_kind kind, uint32_t part, void *data, size_t bytes);
/* The first failure of all that ranks answer, or `own`, the caller's; why is that rank's. */
ERR_MUST_USE enum err world_answers(struct world *w, unsigned ranks, enum err own, struct why *why);
/* All other ranks leave. */
void world_end(struct world *w);

#endif
