#include "world.h"

#include "orders.h"

static struct parcel
parcel_to(
    const struct world *w, unsigned rank, enum parcel_kind kind, const void *data, size_t bytes)
{
	return (struct parcel){.peer = rank,
	    .sends = true,
	    .head = {.kind = kind, .step = w->orders[rank]},
	    .data = (void *)(uintptr_t)data,
	    .bytes = bytes};
}

enum err
world_send(struct world *w, unsigned rank, enum parcel_kind kind, const void *data, size_t bytes)
{
	struct parcel p = parcel_to(w, rank, kind, data, bytes);

	courier_post(w->courier, &p);
	return courier_wait(w->courier, &p);
}

enum err
world_send_all(
    struct world *w, unsigned ranks, enum parcel_kind kind, const void *data, size_t bytes)
{
	struct parcel sends[LINK_RANKS_MAX];
	enum err e = ERR_OK;

	for (unsigned r = 1; r < ranks; r++) {
		sends[r] = parcel_to(w, r, kind, data, bytes);
		courier_post(w->courier, &sends[r]);
	}
	for (unsigned r = 1; r < ranks; r++) {
		enum err got = courier_wait(w->courier, &sends[r]);
		e = e ? e : got;
	}
	return e;
}

enum err
world_order(struct world *w, unsigned rank, const struct order *o)
{
	w->orders[rank]++;
	return world_send(w, rank, PARCEL_ORDER, o, sizeof(*o));
}

enum err
world_order_all(struct world *w, unsigned ranks, const struct order *o)
{
	for (unsigned r = 1; r < ranks; r++)
		w->orders[r]++;
	return world_send_all(w, ranks, PARCEL_ORDER, o, sizeof(*o));
}

enum err
world_receive(
    struct world *w, unsigned rank, enum parcel_kind kind, uint32_t part, void *data, size_t bytes)
{
	struct parcel p = {.peer = rank,
	    .head = {.kind = kind, .step = w->orders[rank], .batch = part},
	    .data = data,
	    .bytes = bytes};

	courier_post(w->courier, &p);
	enum err e = courier_wait(w->courier, &p);
	return e ? e : p.got == bytes ? ERR_OK : ERR_CORRUPT;
}

enum err
world_answers(struct world *w, unsigned ranks, enum err own, struct why *why)
{
	enum err failed = own, e = ERR_OK;

	for (unsigned r = 1; !e && r < ranks; r++) {
		struct answer a;
		e = world_receive(w, r, PARCEL_REPORT, 0, &a, sizeof(a));
		if (e || a.failed == ERR_OK || failed)
			continue;
		failed = a.failed > 0 && a.failed < ERR_COUNT ? (enum err)a.failed : ERR_CORRUPT;
		err_set(why, failed, "rank %u: %.*s", r, (int)sizeof(a.text) - 16, a.text);
	}
	return e ? err_set(why, e, "the other ranks are gone") : failed;
}

void
world_end(struct world *w)
{
	const struct order o = {.kind = ORDER_END};

	(void)!world_order_all(w, courier_ranks(w->courier), &o);
}
