#ifndef WAKE_H
#define WAKE_H

/* Something changed that requests may be waiting for. Who keeps them waiting joins, once, before threads start; who changes something
 * rings. A ring must be quick and may come on any thread. */
struct wake {
	void (*ring)(void *ctx);
	void *ctx;
};
void wake_join(struct wake *w, void (*ring)(void *ctx), void *ctx);
void wake_ring(const struct wake *w);

#endif
