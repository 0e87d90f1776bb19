#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "conn_inside.h"
#include "log.h"
#include "proxy.h"

static bool
refuse(struct conn *c, enum log_level level, const char *why)
{
	log_limited(level, "proxy.refused", LOG_S("peer", c->x.peer), LOG_S("why", why));
	conn_close(c);
	return false;
}

/* Checks the budget of handshakes for the client's address, as the load balancer's own address is not limited. */
static bool
admit(struct conn *c)
{
	conn_join_unauthenticated(c, NULL); /* it makes no room for itself */
	if (!conn_admit(c->io, c->x.peer))
		return refuse(c, LOG_LEVEL_INFO, "its address has too many handshakes");
	c->handshaking = true;
	conn_join_unauthenticated(c, &c->io->handshakes);
	conn_change_state(c, CONN_HANDSHAKE);
	return conn_await(c, TLS_AGAIN_IN); /* handshakes have their turns by event */
}

/* Takes only the head's bytes from the socket, because TLS reads the rest from there. */
bool
conn_advance_proxy(struct conn *c)
{
	uint8_t *head = (uint8_t *)c->io->scratch;
	size_t had = c->in.len, used;
	char peer[64];

	if (had > 0)
		memcpy(head, c->in.data, had);
	ssize_t n = recv(c->source.fd, head + had, PROXY_HEAD_MAX - had, MSG_PEEK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return conn_await(c, TLS_AGAIN_IN);
	if (n <= 0)
		return refuse(c, had > 0 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "it ended");
	enum proxy_result r = proxy_parse(head, had + (size_t)n, &used, peer);
	if (r == PROXY_BAD || used < had ||
	    recv(c->source.fd, head + had, used - had, 0) != (ssize_t)(used - had))
		return refuse(c, LOG_LEVEL_INFO, "no PROXY head came first");
	if (r == PROXY_DONE) {
		buf_reset(&c->in);
		if (peer[0])
			snprintf(c->x.peer, sizeof(c->x.peer), "%s", peer);
		return admit(c);
	}
	if (used == PROXY_HEAD_MAX || buf_append(&c->in, head + had, used - had))
		return refuse(c, LOG_LEVEL_INFO, "its PROXY head is too long");
	return conn_await(c, TLS_AGAIN_IN);
}
