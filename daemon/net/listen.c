#include "listen.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024

enum err
listen_tcp(const struct config_listen *at, uint16_t port, int *out, struct why *why)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
	    .ai_socktype = SOCK_STREAM,
	    .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *ai = NULL;
	char service[8];
	int one = 1, zero = 0, fd = -1;

	snprintf(service, sizeof(service), "%u", port);
	/* All of both families is one IPv6 socket, unless this host has no IPv6. */
	const char *host = at->host[0] ? at->host : "::";
	int rc = getaddrinfo(host, service, &hints, &ai);
	if (rc == 0)
		fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 && !at->host[0] && rc == 0) {
		freeaddrinfo(ai);
		ai = NULL;
		rc = getaddrinfo("0.0.0.0", service, &hints, &ai);
		if (rc == 0)
			fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (rc != 0)
		return err_set(why, ERR_INVALID, "listen %s: %s", host, gai_strerror(rc));
	enum err e = ERR_OK;
	if (fd < 0)
		e = err_errno(why, "socket for %s", host);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
		if (ai->ai_family == AF_INET6)
			setsockopt(
			    fd, IPPROTO_IPV6, IPV6_V6ONLY, at->host[0] ? &one : &zero, sizeof(one));
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0)
			e = err_errno(why, "listen on %s port %u", host, port);
	}
	freeaddrinfo(ai);
	if (e && fd >= 0)
		close(fd);
	*out = fd;
	return e;
}

uint16_t
listen_port(int fd)
{
	/* Both families keep the port in the same place. */
	struct sockaddr_in6 a = {.sin6_port = 0};
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len) != 0)
		return 0;
	return ntohs(a.sin6_port);
}

enum err
listen_unix(const char *path, int *out, struct why *why)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(why, ERR_LIMIT, "admin_socket: path too long: %s", path);
	strcpy(a.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(why, "socket for %s", path);
	/* Only a socket nobody answers on is in the way of a restart. */
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
		close(fd);
		return err_set(why, ERR_EXISTS, "another coordinator answers on %s", path);
	}
	unlink(path);
	mode_t old = umask(0117);
	int rc = bind(fd, (struct sockaddr *)&a, sizeof(a));
	umask(old);
	if (rc != 0 || listen(fd, BACKLOG) != 0) {
		enum err e = err_errno(why, "listen on %s", path);
		close(fd);
		return e;
	}
	*out = fd;
	return ERR_OK;
}
