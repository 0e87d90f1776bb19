#ifndef SERVER_H
#define SERVER_H
#include "config.h"
#include "route.h"

/* The I/O threads, their listeners, and how connections spread over them. */
struct server;
struct server_report; /* report.h */

/* Binds the listeners (TLS) and the admin socket. ERR_IO naming the address when one is taken. */
ERR_MUST_USE enum err server_new(struct server **out, const struct services *services,
    const struct route_table *routes, struct why *why);
/* Could server_new bind the listeners for TLS and for probes now? Fails as server_new would. */
ERR_MUST_USE enum err server_try(const struct config *c, struct why *why);
/* Starts the threads. */
ERR_MUST_USE enum err server_start(struct server *s, struct why *why);
/* Port of the first TLS listener (for port 0). */
uint16_t server_port(const struct server *s);
/* Port of the listener for probes; 0 without one. */
uint16_t server_probe_port(const struct server *s);
/* Has the handlers of parked requests called again soon, on the requests' own threads: server_wake those that wait for work, server_tell
 * those of readers (route.reads). Any thread. */
void server_wake(void *server);
void server_tell(void *server);
/* After an identity changed: parked requests and uploads that their identities may no longer do are refused at once. Any thread. */
void server_check(struct server *s);
/* The same, and no TLS session resumes. */
void server_forget(struct server *s);
void server_report(const struct server *s, struct server_report *out);
/* The table that server_new was given. */
const struct route_table *server_routes(const struct server *s);
/* Closes listeners, lets running requests finish for at most wait_ms, joins the threads. */
void server_stop(struct server *s, uint64_t wait_ms);
void server_free(struct server *s);

#endif
