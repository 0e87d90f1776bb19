#include "request_ids.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"
#include "rng.h"

static uint32_t start;

static void
draw(void)
{
	/* Without random numbers the time of the start must do: the name is for logs alone. */
	if (rng_bytes(&start, sizeof(start)))
		start = (uint32_t)(clock_wall() * 1000);
}

void
request_ids_next(char out[REQUEST_ID_MAX])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static atomic_uint_least64_t count;

	pthread_once(&once, draw);
	snprintf(out, REQUEST_ID_MAX, "%08" PRIx32 "-%" PRIx64, start,
	    (uint64_t)atomic_fetch_add(&count, 1) + 1);
}
