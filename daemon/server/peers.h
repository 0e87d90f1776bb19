#ifndef PEERS_H
#define PEERS_H
#include "tally.h"

/*
 * The TLS handshakes that remote addresses have in flight. One tally for all I/O threads; any thread may call. Addresses are text as
 * inet_ntop prints it. IPv6 hosts of one /64 are one address, and a mapped IPv4 address is that address.
 */

/* Counts one more handshake in flight, as tally_enter does. */
enum tally_room peers_enter(
    struct tally *p, const char *address, const struct tally_limits *limits);
void peers_leave(struct tally *p, const char *address);

#endif
