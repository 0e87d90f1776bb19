#ifndef PEERS_H
#define PEERS_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * What remote addresses cost: TLS handshakes in flight, and failures without a valid identity in the last minute. One table
 * for all I/O threads; any thread may call. Addresses are text as inet_ntop prints it. IPv6 hosts of one /64 are one
 * address, and a mapped IPv4 address is that address.
 *
 * The table holds at most PEERS_MAX addresses. A new one takes the place of the one that has been idle the longest, which
 * is one without handshakes; an address whose failures are a minute old is forgotten.
 */
#define PEERS_MAX 65536
#define PEERS_WINDOW_MS 60000

struct peers;

ERR_MUST_USE enum err peers_new(struct peers **out);
/* NULL is legal. */
void peers_free(struct peers *p);
/* Counts one more handshake in flight. False, and nothing counted, if there are `most` over all addresses or `most_each`
 * from this one. Who got true calls peers_leave once. */
bool peers_enter(struct peers *p, const char *address, uint32_t most, uint32_t most_each);
void peers_leave(struct peers *p, const char *address);
/* Counts a failure. now_ms is monotonic time. */
void peers_failed(struct peers *p, const char *address, uint64_t now_ms);
/* Failures in the minute before now, to within five seconds. */
uint32_t peers_failures(struct peers *p, const char *address, uint64_t now_ms);
/* Addresses in the table. */
uint32_t peers_count(struct peers *p);

#endif
