#ifndef PEERS_H
#define PEERS_H
#include "tally.h"

/*
 * What remote addresses cost: a tally of TLS handshakes in flight, and of failures without a valid identity in the last
 * minute. One for all I/O threads; any thread may call. Addresses are text as inet_ntop prints it. IPv6 hosts of one /64 are
 * one address, and a mapped IPv4 address is that address.
 */

/* Counts one more handshake in flight, as tally_enter does: an address with more than limits->calm failures is slowed down,
 * because handshakes that fail cost it nothing and us a signature. */
enum tally_room peers_enter(
    struct tally *p, const char *address, const struct tally_limits *limits, uint64_t now_ms);
void peers_leave(struct tally *p, const char *address);
/* Counts a failure. */
void peers_failed(struct tally *p, const char *address, uint64_t now_ms);
/* Failures in the minute before now, to within five seconds. */
uint32_t peers_failures(struct tally *p, const char *address, uint64_t now_ms);

#endif
