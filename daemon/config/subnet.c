#include "subnet.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "num.h"

#define MAPPED_BITS 96

/* Both families as IPv6. *bits: of a whole address of its family. */
static bool
address_bytes(const char *text, uint8_t out[16], unsigned *bits)
{
	*bits = 128;
	if (inet_pton(AF_INET6, text, out) == 1)
		return true;
	memset(out, 0, 10);
	memset(out + 10, 0xff, 2);
	*bits = 32;
	return inet_pton(AF_INET, text, out + 12) == 1;
}

/* Zeros what stands behind the first `bits`. */
static void
cut(uint8_t address[16], unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned left = bits > 8 * i ? bits - 8 * i : 0;
		if (left < 8)
			address[i] = (uint8_t)(address[i] & ~(0xffu >> left));
	}
}

bool
subnet_parse(struct subnet *out, const char *text)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char host[INET6_ADDRSTRLEN];
	uint8_t whole[16];
	unsigned family_bits;
	uint64_t bits;

	if (len >= sizeof(host))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	if (!address_bytes(host, out->address, &family_bits))
		return false;
	bits = family_bits;
	if (slash && !num_u64(slash + 1, family_bits, &bits))
		return false;
	out->bits = (uint8_t)(bits + (family_bits == 32 ? MAPPED_BITS : 0));
	memcpy(whole, out->address, sizeof(whole));
	cut(out->address, out->bits);
	return memcmp(whole, out->address, sizeof(whole)) == 0;
}

bool
subnet_has(const struct subnet *s, const char *address)
{
	uint8_t a[16];
	unsigned bits;

	if (!address_bytes(address, a, &bits))
		return false;
	cut(a, s->bits);
	return memcmp(a, s->address, sizeof(a)) == 0;
}
