#ifndef SUBNET_H
#define SUBNET_H
#include <stdbool.h>
#include <stdint.h>

/* A range of IP addresses. An IPv4 address and the same one mapped into IPv6 (::ffff:a.b.c.d) are one address. */
struct subnet {
	uint8_t address[16]; /* as IPv6, bits behind the prefix zero */
	uint8_t bits; /* length of the prefix, 0 to 128 */
};

/* Reads ADDRESS or ADDRESS/BITS; false if the text is neither, or has bits set behind the prefix. */
bool subnet_parse(struct subnet *out, const char *text);
/* Is this address, as inet_ntop prints it, in the range? False for a text that is no address. */
bool subnet_has(const struct subnet *s, const char *address);

#endif
