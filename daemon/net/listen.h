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

/* Of an address, or of both families for an empty one. Several threads may have one each for the same port. ERR_IO, with what to
 * do, for a port in use and an address that is not there. */
ERR_MUST_USE enum err listen_tcp(const struct config_listen *at, uint16_t port,
    enum listen_place place, int *out, struct why *why);
/* The port it got; 0 for none. */
uint16_t listen_port(int fd);
/* A Unix socket for owner and group. A file that nobody answers on gives way; ERR_EXISTS if somebody does. */
ERR_MUST_USE enum err listen_unix(const char *path, int *out, struct why *why);

#endif
