#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config.h"

#define BACKLOG 1024

/* Makes the socket for an address. All addresses of IPv4 and IPv6 are one IPv6 socket, unless this host has no IPv6. */
static enum err
resolve(const struct config_listen *at, uint16_t port, struct addrinfo **ai, int *fd)
{
	static const char *const all[] = {"::", "0.0.0.0"};
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
	    .ai_socktype = SOCK_STREAM,
	    .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
	char service[8];

	*fd = -1;
	*ai = NULL;
	snprintf(service, sizeof(service), "%u", port);
	for (size_t i = 0; i < (at->host[0] ? 1 : 2) && *fd < 0; i++) {
		if (*ai)
			freeaddrinfo(*ai);
		*ai = NULL;
		if (getaddrinfo(at->host[0] ? at->host : all[i], service, &hints, ai) != 0)
			return ERR_INVALID;
		*fd = socket(
		    (*ai)->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	}
	return *fd < 0 ? ERR_IO : ERR_OK;
}

static void
set(int fd, int level, int option, int value)
{
	setsockopt(fd, level, option, &value, sizeof(value));
}

/* The first socket of a port binds without SO_REUSEPORT, so that it fails if another program has the port, and then allows the other
 * sockets of this process. Otherwise two coordinators of one user would share a port without an error. */
static enum err
take_port(int fd, const struct addrinfo *ai, enum listen_place place)
{
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (place == LISTEN_MORE)
		set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0)
		return ERR_IO;
	if (place == LISTEN_FIRST)
		set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	return ERR_OK;
}

static enum err
say_refused(const char *host, uint16_t port, struct why *why)
{
	if (errno == EADDRINUSE)
		return err_set(why, ERR_IO,
		    "port %u of %s is in use by another program: stop it, or give another port",
		    port, host);
	if (errno == EADDRNOTAVAIL)
		return err_set(why, ERR_IO,
		    "this machine has no address %s: is its network not up yet?", host);
	return err_errno(why, "listen on %s port %u", host, port);
}

enum err
listen_tcp(const struct config_listen *at, uint16_t port, enum listen_place place, int *out,
    struct why *why)
{
	const char *host = at->host[0] ? at->host : "all addresses";
	struct addrinfo *ai = NULL;
	int fd = -1;

	enum err e = resolve(at, port, &ai, &fd);
	if (e == ERR_INVALID)
		return err_set(why, e, "listen: %s is no address", host);
	if (e) {
		e = err_errno(why, "socket for %s", host);
	} else {
		if (ai->ai_family == AF_INET6)
			set(fd, IPPROTO_IPV6, IPV6_V6ONLY, at->host[0] != 0);
		e = take_port(fd, ai, place);
		if (e)
			e = say_refused(host, port, why);
	}
	freeaddrinfo(ai);
	if (e && fd >= 0)
		close(fd);
	*out = e ? -1 : fd;
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

void
listen_peer(const struct sockaddr_storage *from, int fd, char out[64])
{
	char host[48] = "?";
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (from->ss_family == AF_INET) {
		inet_ntop(
		    AF_INET, &((const struct sockaddr_in *)from)->sin_addr, host, sizeof(host));
	} else if (from->ss_family == AF_INET6) {
		inet_ntop(
		    AF_INET6, &((const struct sockaddr_in6 *)from)->sin6_addr, host, sizeof(host));
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0) {
		snprintf(out, 64, "uid:%u pid:%d", cred.uid, cred.pid);
		return;
	}
	snprintf(out, 64, "%s", host);
}

void
listen_file_note(struct listen_file *f, const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return;
	strcpy(f->path, path);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
}

void
listen_file_remove(struct listen_file *f)
{
	struct stat st;

	if (f->path[0] && lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		unlink(f->path);
	f->path[0] = '\0';
}
