#ifndef LISTEN_H
#define LISTEN_H
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "err.h"

struct sockaddr_storage;

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
/* The file of a Unix socket as it was bound. Noted, and removed in the end, unless another coordinator has bound that path since; the
 * configuration may name another by then. Zeros: none. */
struct listen_file {
	char path[CONFIG_PATH_MAX];
	dev_t dev;
	ino_t ino;
};
void listen_file_note(struct listen_file *f, const char *path);
void listen_file_remove(struct listen_file *f);
/* The peer of an accepted socket for people: its address, or user and process on this host. */
void listen_peer(const struct sockaddr_storage *from, int fd, char out[64]);

#endif
