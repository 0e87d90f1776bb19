#ifndef HASH_X86_H
#define HASH_X86_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Internal to crypto/: SHA-256's compression (FIPS 180-4, 6.2.2) with the SHA instructions of x86, for the mbedTLS back end, whose
 * library does not use them. */

/* Does this processor have them? Elsewhere than on x86-64: no. */
bool hash_x86_here(void);
/* Takes `count` blocks of 64 bytes into the state (a, b, ..., h). Only where hash_x86_here(). */
void hash_x86_blocks(uint32_t state[8], const uint8_t *blocks, size_t count);

#endif
