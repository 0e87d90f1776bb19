#include "changes.h"

#include <stdlib.h>
#include <string.h>

#include "change.h"
#include "clock.h"
#include "exchange.h"
#include "json.h"
#include "services.h"

#define WAIT_S 25
#define WAIT_MAX_S 50
#define FULL_RETRY_S 5

/* It lives in x->state as long as the exchange. */
struct waiter {
	struct change_reader reader;
	uint64_t after;
};

/* Reads the query. NULL: the problem response is set. */
static struct waiter *
begin(struct exchange *x)
{
	uint64_t after = 0, wait = WAIT_S;

	if (!exchange_number(x, "after", UINT64_MAX, &after) ||
	    !exchange_number(x, "wait", UINT64_MAX, &wait))
		return NULL;
	struct waiter *w = calloc(1, sizeof(*w));
	if (!w) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return NULL;
	}
	memcpy(w->reader.owner, x->who.owner, sizeof(w->reader.owner));
	w->after = after;
	x->until_ms = clock_ms() + (wait < WAIT_MAX_S ? wait : WAIT_MAX_S) * 1000;
	x->expired |= wait == 0;
	return w;
}

static void
answer(struct exchange *x, uint64_t counter)
{
	struct json *v = json_object();

	json_add_u64(v, "change", counter);
	exchange_json(x, 200, v);
}

void
changes_wait(struct exchange *x)
{
	struct waiter *w = x->state ? x->state : begin(x);
	uint64_t counter;

	if (!w)
		return;
	x->state = w;
	if (x->expired) {
		answer(x, jobs_change_leave(x->services->engine, &w->reader));
		return;
	}
	switch (jobs_change_wait(x->services->engine, &w->reader, w->after, &counter)) {
	case CHANGE_KNOWN:
		answer(x, counter);
		break;
	case CHANGE_PARKED:
		x->parked = true;
		break;
	case CHANGE_FULL:
		x->retry_after_s = FULL_RETRY_S;
		exchange_problem(x, PROBLEM_TOO_MANY_REQUESTS,
		    "too many requests wait for a change already: %d of an identity may, %d of the "
		    "admin socket, %d of all",
		    CHANGE_READERS_OF_ONE, CHANGE_READERS_OF_SOCKET, CHANGE_READERS_MAX);
		break;
	}
}

void
changes_drop(struct exchange *x)
{
	struct waiter *w = x->state;

	if (w)
		(void)jobs_change_leave(x->services->engine, &w->reader);
	free(w);
	x->state = NULL;
}
