#ifndef FINGERPRINT_H
#define FINGERPRINT_H
#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits, on from an earlier one. */
#define FINGERPRINT_START 0xcbf29ce484222325u

static inline uint64_t
fingerprint_add(uint64_t h, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
	return h;
}

static inline uint64_t
fingerprint(const void *data, size_t len)
{
	return fingerprint_add(FINGERPRINT_START, data, len);
}

#endif
