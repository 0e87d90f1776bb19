#include "wake.h"

#include <stddef.h>

void
wake_join(struct wake *w, void (*ring)(void *ctx), void *ctx)
{
	*w = (struct wake){ring, ctx};
}

void
wake_ring(const struct wake *w)
{
	if (w->ring)
		w->ring(w->ctx);
}
