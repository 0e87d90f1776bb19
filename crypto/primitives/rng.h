#ifndef RNG_H
#define RNG_H
#include <stddef.h>

#include "err.h"

/* Cryptographic randomness straight from the kernel (getrandom). Any thread; blocks only before the
 * kernel's pool is seeded. ERR_IO if the kernel refuses. */
ERR_MUST_USE enum err rng_bytes(void *out, size_t len);

#endif
