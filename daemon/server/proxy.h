#ifndef PROXY_H
#define PROXY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

/*
 * The head that a load balancer writes before a connection's first byte, to name the client: the PROXY protocol, versions 1
 * (text) and 2 (binary). Source: haproxy.org, proxy-protocol.txt, 2020. Only TCP over IPv4 and IPv6; what version 2 adds
 * behind the addresses (TLVs) is skipped. A head is read only from balancers that the configuration names: anybody could write one.
 */
#define PROXY_HEAD_MAX 536 /* bytes: what the specification has every sender keep to */

enum proxy_result {
	PROXY_DONE, /* a whole head */
	PROXY_MORE, /* the beginning of one */
	PROXY_BAD, /* no head, or one that is too long */
};

/* Looks at the first len bytes of a connection. *used: how many of them belong to the head, for PROXY_DONE and PROXY_MORE.
 * PROXY_DONE: peer is the source address as inet_ntop prints it, or "" when the balancer speaks for itself (LOCAL, UNKNOWN). */
enum proxy_result proxy_parse(const uint8_t *data, size_t len, size_t *used, char peer[64]);
/* Is the peer a balancer that the configuration names? */
bool proxy_is_from(const struct config *c, const char *peer);

#endif
