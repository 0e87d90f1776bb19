#ifndef WAKE_H
#define WAKE_H

/* Wakes requests that wait for a change. The part that keeps them waiting sets `ring` with wake_join, once, before threads start; code
 * that changes something calls wake_ring. `ring` must be quick and may be called on any thread. */
struct wake {
	void (*ring)(void *ctx);
	void *ctx;
};
void wake_join(struct wake *w, void (*ring)(void *ctx), void *ctx);
void wake_ring(const struct wake *w);

#endif
