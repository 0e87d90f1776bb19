#ifndef LISTEN_H
#define LISTEN_H
#include <stdint.h>

#include "err.h"

struct config_listen;

/* Sockets that listen, non-blocking. The caller closes them. */

enum listen_place {
	LISTEN_FIRST, /* nobody else may have the port */
	LISTEN_MORE, /* another one for a port of which this process has the first */
};

/* A TCP socket that listens on an address, or on all addresses, IPv4 and IPv6, if the address is empty. Several threads may have a socket
 * each on one port. ERR_IO, with what to do, for a port in use and an address that this host does not have. */
ERR_MUST_USE enum err listen_tcp(const struct config_listen *at, uint16_t port,
    enum listen_place place, int *out, struct why *why);
/* The port that the socket fd has; 0 for none. */
uint16_t listen_port(int fd);
/* A Unix socket that owner and group may use. A socket file at path that nobody answers on is replaced; ERR_EXISTS if somebody does. */
ERR_MUST_USE enum err listen_unix(const char *path, int *out, struct why *why);

#endif
