#include "server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "conn.h"
#include "cpu.h"
#include "health.h"
#include "listen.h"
#include "log.h"
#include "proxy.h"
#include "services.h"
#include "services_ca.h"
#include "shared.h"
#include "tls.h"

#define SERVER_THREADS_MAX 256 /* as many as io_threads may ask for */
#define TICK_MS 50
#define LOOK_MS 200
#define ADMIN_PLACES 16 /* connections of the Unix socket above the limit */

struct listener {
	struct loop_source source;
	struct server *server;
	struct thread *thread;
	enum conn_kind kind;
	/* No descriptor was left for a connection; used by the listener's thread alone. */
	bool resting;
};

/* The first half are I/O threads, for peers that have shown a certificate, the admin socket and the probes. The other half are handshake
 * threads (`door`): they accept, do handshakes and serve unauthenticated peers, with a share of the processor (pace.h). */
struct thread {
	struct io io;
	struct server *server;
	bool door;
	struct pace pace;
	pthread_t id;
	bool running;
	uint64_t look_ms; /* of conn_tick */
	struct loop_post wake, tell, stop, evict;
	atomic_bool waking, telling, evicting;
	atomic_bool checking; /* as it wakes: an identity has changed */
};

struct server {
	const struct services *services;
	const struct route_table *routes;
	struct listener *listeners;
	size_t listener_count;
	struct thread threads[2 * SERVER_THREADS_MAX];
	unsigned inner_count, thread_count;
	struct tally *peers, *identities;
	atomic_uint_least64_t coming; /* connections that were let in and are not counted yet */
	uint64_t files; /* descriptors this process may have */
	uint16_t port, probe_port;
	struct listen_file socket; /* of the administrators */
};

static struct thread *
thread_of(struct io *io)
{
	return (struct thread *)((char *)io - offsetof(struct thread, io));
}

/* --- accepting */

/* A socket on its way to the thread with the fewest connections. */
struct incoming {
	struct loop_post post;
	struct thread *to;
	int fd;
	enum conn_kind kind;
	char peer[64];
};

static void
on_incoming(struct loop_post *p)
{
	struct incoming *in = (struct incoming *)p;

	conn_open(&in->to->io, in->fd, in->kind, in->peer);
	atomic_fetch_sub(&in->to->server->coming, 1);
	free(in);
}

static struct thread *
least_loaded(struct server *s)
{
	struct thread *best = &s->threads[0];

	for (unsigned i = 1; i < s->inner_count; i++)
		if (atomic_load(&s->threads[i].io.count) < atomic_load(&best->io.count))
			best = &s->threads[i];
	return best;
}

static uint64_t
open_connections(const struct server *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < s->thread_count; i++)
		n += atomic_load(&s->threads[i].io.count);
	return n;
}

static void
on_evict(struct loop_post *p)
{
	struct thread *t = (struct thread *)((char *)p - offsetof(struct thread, evict));

	atomic_store(&t->evicting, false);
	(void)conn_evict(&t->io, false);
}

/* Closes an unauthenticated connection of this thread. False: there is none, and the other threads are asked to close one for next time. */
static bool
make_room(struct io *io, bool handshake)
{
	struct thread *self = thread_of(io);
	struct server *s = self->server;

	if (conn_evict(io, handshake))
		return true;
	for (unsigned i = 0; i < s->thread_count; i++)
		if (&s->threads[i] != self && !atomic_exchange(&s->threads[i].evicting, true))
			loop_post(s->threads[i].io.loop, &s->threads[i].evict);
	return false;
}

/* May a new connection be opened? Its handshake is then counted (conn_admit). before: connections that others let in at this moment. */
static bool
is_admitted(struct thread *self, enum conn_kind kind, const char *peer, uint64_t before)
{
	struct server *s = self->server;
	const struct config *c = conn_config(&self->io);
	/* Some descriptors are for the disk: without them the deltas of those who are connected could not be taken. */
	uint64_t files = s->files - s->files / 4;
	uint64_t most = c->connections < files ? c->connections : files;

	/* Whoever administers gets in when devices have taken all places. */
	if (kind == CONN_LOCAL)
		most += ADMIN_PLACES;
	if (before + open_connections(s) >= most && !make_room(&self->io, false))
		return false;
	return kind != CONN_OVER_TLS || conn_admit(&self->io, peer);
}

/* May a new connection be opened? Then it is counted in `coming` until conn_open has counted it. */
static bool
admit(struct thread *self, enum conn_kind kind, const char *peer)
{
	atomic_uint_least64_t *coming = &self->server->coming;

	if (is_admitted(self, kind, peer, atomic_fetch_add(coming, 1)))
		return true;
	atomic_fetch_sub(coming, 1);
	return false;
}

static void
hand_over(struct listener *l, int fd, enum conn_kind kind, const char *peer)
{
	struct thread *to = l->kind == CONN_OVER_TLS ? l->thread : least_loaded(l->server);
	int one = 1;

	if (l->kind != CONN_LOCAL)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (to == l->thread) {
		conn_open(&to->io, fd, kind, peer);
		atomic_fetch_sub(&to->server->coming, 1);
		return;
	}
	struct incoming *in = calloc(1, sizeof(*in));
	if (!in) {
		atomic_fetch_sub(&to->server->coming, 1);
		close(fd);
		return;
	}
	*in = (struct incoming){.post.fn = on_incoming, .to = to, .fd = fd, .kind = kind};
	snprintf(in->peer, sizeof(in->peer), "%s", peer);
	loop_post(to->io.loop, &in->post);
}

/* Stops a listener until the next tick, because accept fails, and epoll would report the listener again at once. */
static void
rest(struct listener *l, int number)
{
	const struct services *s = l->server->services;

	if (!health_reason(s->health))
		log_event(LOG_LEVEL_ERROR, "accept.failed", LOG_S("why", strerror(number)));
	health_note(s->health, err_number(number), 0, strerror(number));
	l->resting = loop_change(l->thread->io.loop, &l->source, 0) == ERR_OK;
}

static void
on_accept(struct loop_source *source, uint32_t events)
{
	struct listener *l = (struct listener *)source;
	struct sockaddr_storage from;
	char peer[64];

	(void)events;
	for (int i = 0; i < 64; i++) {
		socklen_t len = sizeof(from);
		memset(&from, 0, sizeof(from));
		int fd = accept4(
		    source->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
				rest(l, errno);
			return;
		}
		listen_peer(&from, fd, peer);
		enum conn_kind kind = l->kind;
		if (kind == CONN_OVER_TLS && proxy_is_from(conn_config(&l->thread->io), peer))
			kind = CONN_PROXIED;
		if (!admit(l->thread, kind, peer)) {
			log_limited(LOG_LEVEL_INFO, "accept.refused", LOG_S("peer", peer));
			close(fd);
			continue;
		}
		hand_over(l, fd, kind, peer);
	}
}

/* --- listeners */

static enum err
add_listener(struct server *s, int fd, enum conn_kind kind, struct thread *t)
{
	struct listener *l = &s->listeners[s->listener_count];

	*l = (struct listener){.source = {on_accept, fd}, .server = s, .thread = t, .kind = kind};
	s->listener_count++;
	return loop_add(t->io.loop, &l->source, EPOLLIN);
}

static enum err
try_one(const struct config_listen *at, struct why *why)
{
	int fd = -1;
	enum err e = listen_tcp(at, at->port, LISTEN_FIRST, &fd, why);

	if (!e)
		close(fd);
	return e;
}

enum err
server_try(const struct config *c, struct why *why)
{
	enum err e = c->probe.host[0] ? try_one(&c->probe, why) : ERR_OK;

	for (size_t i = 0; i < c->listen_count && !e; i++)
		e = try_one(&c->listen[i], why);
	return e;
}

/* Opens one SO_REUSEPORT socket per handshake thread and address. */
static enum err
open_listeners(struct server *s, struct why *why)
{
	const struct config *c = s->services->fixed;
	enum err e = ERR_OK;
	int fd = -1;

	s->listeners = calloc(c->listen_count * s->thread_count + 2, sizeof(*s->listeners));
	if (!s->listeners)
		return ERR_NOMEM;
	for (size_t i = 0; i < c->listen_count; i++) {
		uint16_t port = c->listen[i].port;
		for (unsigned t = s->inner_count; t < s->thread_count && !e; t++) {
			e = listen_tcp(&c->listen[i], port,
			    t == s->inner_count ? LISTEN_FIRST : LISTEN_MORE, &fd, why);
			if (!e) {
				port = listen_port(fd);
				if (s->port == 0)
					s->port = port;
				e = add_listener(s, fd, CONN_OVER_TLS, &s->threads[t]);
			}
		}
	}
	if (!e && c->admin_socket[0]) {
		e = listen_unix(c->admin_socket, &fd, why);
		if (!e)
			listen_file_note(&s->socket, c->admin_socket);
		if (!e)
			e = add_listener(s, fd, CONN_LOCAL, &s->threads[0]);
	}
	if (!e && c->probe.host[0]) {
		e = listen_tcp(&c->probe, c->probe.port, LISTEN_FIRST, &fd, why);
		if (!e) {
			s->probe_port = listen_port(fd);
			e = add_listener(s, fd, CONN_PROBE, &s->threads[0]);
		}
	}
	return e;
}

/* --- threads */

static void
on_tick(void *ctx, uint64_t now_ms)
{
	struct thread *t = ctx;

	conn_turn_readers(&t->io, now_ms);
	if (now_ms < t->look_ms)
		return;
	t->look_ms = now_ms + LOOK_MS;
	conn_tick(&t->io, now_ms);
	for (size_t i = 0; i < t->server->listener_count; i++) {
		struct listener *l = &t->server->listeners[i];
		if (l->thread == t && l->resting)
			l->resting = loop_change(t->io.loop, &l->source, EPOLLIN);
	}
}

static void
on_batch(void *ctx)
{
	struct thread *t = ctx;
	unsigned share = conn_config(&t->io)->strangers_cpu;

	if (t->door)
		conn_serve_line(&t->io);
	conn_sweep(&t->io);
	if (t->door)
		pace_wait(&t->pace, share);
}

static void
on_wake(struct loop_post *p)
{
	struct thread *t = (struct thread *)((char *)p - offsetof(struct thread, wake));

	atomic_store(&t->waking, false);
	if (atomic_exchange(&t->checking, false))
		conn_check_readers(&t->io);
	conn_wake_parked(&t->io);
}

static void
on_tell(struct loop_post *p)
{
	struct thread *t = (struct thread *)((char *)p - offsetof(struct thread, tell));

	atomic_store(&t->telling, false);
	conn_tell_readers(&t->io, clock_ms());
}

static void
on_stop(struct loop_post *p)
{
	struct thread *t = (struct thread *)((char *)p - offsetof(struct thread, stop));

	for (size_t i = 0; i < t->server->listener_count; i++)
		if (t->server->listeners[i].thread == t)
			loop_remove(t->io.loop, &t->server->listeners[i].source);
	conn_stop(&t->io);
}

static void *
run(void *arg)
{
	struct thread *t = arg;

	(void)prctl(PR_SET_NAME, t->door ? "door" : "io");
	loop_run(t->io.loop);
	conn_sweep(&t->io);
	return NULL;
}

static struct io *
inner_io(struct io *door)
{
	return &least_loaded(thread_of(door)->server)->io;
}

static enum err
init_thread(struct server *s, struct thread *t)
{
	enum err e = loop_new(&t->io.loop);

	if (e)
		return e;
	t->server = s;
	t->door = t >= s->threads + s->inner_count;
	t->io.make_room = make_room;
	t->io.inner = t->door ? inner_io : NULL;
	pace_init(&t->pace);
	t->io.pace = t->door ? &t->pace : NULL;
	t->io.services = s->services;
	t->io.routes = s->routes;
	t->io.peers = s->peers;
	t->io.identities = s->identities;
	t->io.scratch = malloc(CONN_SCRATCH);
	t->wake.fn = on_wake;
	t->tell.fn = on_tell;
	t->stop.fn = on_stop;
	t->evict.fn = on_evict;
	loop_on_tick(t->io.loop, TICK_MS, on_tick, t);
	loop_on_batch(t->io.loop, on_batch, t);
	return t->io.scratch ? ERR_OK : ERR_NOMEM;
}

enum err
server_new(struct server **out, const struct services *services, const struct route_table *routes,
    struct why *why)
{
	struct server *s = calloc(1, sizeof(*s));
	struct rlimit files = {.rlim_cur = RLIM_INFINITY};
	enum err e = ERR_OK;

	if (!s)
		return err_set(why, ERR_NOMEM, "no memory");
	s->services = services;
	s->routes = routes;
	getrlimit(RLIMIT_NOFILE, &files);
	s->files = files.rlim_cur;
	e = tally_new(&s->peers);
	if (!e)
		e = tally_new(&s->identities);
	unsigned n = services->fixed->io_threads ? services->fixed->io_threads : cpu_count();
	if (n > SERVER_THREADS_MAX)
		n = SERVER_THREADS_MAX;
	s->inner_count = n;
	for (; s->thread_count < 2 * n && !e; s->thread_count++)
		e = init_thread(s, &s->threads[s->thread_count]);
	if (!e)
		e = open_listeners(s, why);
	if (e) {
		server_free(s);
		return e;
	}
	*out = s;
	return ERR_OK;
}

enum err
server_start(struct server *s, struct why *why)
{
	for (unsigned i = 0; i < s->thread_count; i++) {
		if (pthread_create(&s->threads[i].id, NULL, run, &s->threads[i]) != 0)
			return err_set(why, ERR_NOMEM, "cannot start an I/O thread");
		s->threads[i].running = true;
	}
	return ERR_OK;
}

uint16_t
server_port(const struct server *s)
{
	return s->port;
}

uint16_t
server_probe_port(const struct server *s)
{
	return s->probe_port;
}

void
server_wake(void *server)
{
	struct server *s = server;

	for (unsigned i = 0; i < s->thread_count; i++)
		if (!atomic_exchange(&s->threads[i].waking, true))
			loop_post(s->threads[i].io.loop, &s->threads[i].wake);
}

void
server_tell(void *server)
{
	struct server *s = server;

	for (unsigned i = 0; i < s->thread_count; i++)
		if (!atomic_exchange(&s->threads[i].telling, true))
			loop_post(s->threads[i].io.loop, &s->threads[i].tell);
}

void
server_check(struct server *s)
{
	for (unsigned i = 0; i < s->thread_count; i++)
		atomic_store(&s->threads[i].checking, true);
	server_wake(s);
}

void
server_forget(struct server *s)
{
	const struct services_tls *shown = shared_take(s->services->tls);

	tls_context_forget(shown->context);
	shared_give(s->services->tls, shown);
	server_check(s);
}

void
server_report(const struct server *s, struct server_report *out)
{
	*out = (struct server_report){.connections = open_connections(s)};
	for (unsigned i = 0; i < s->thread_count; i++)
		conn_add_counts(&s->threads[i].io.counts, out);
}

const struct route_table *
server_routes(const struct server *s)
{
	return s->routes;
}

static void
end_threads(struct server *s, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		loop_stop(s->threads[i].io.loop);
	for (unsigned i = from; i < to; i++)
		if (s->threads[i].running)
			pthread_join(s->threads[i].id, NULL);
}

void
server_stop(struct server *s, uint64_t wait_ms)
{
	uint64_t until = clock_ms() + wait_ms;

	for (unsigned i = 0; i < s->thread_count; i++)
		loop_post(s->threads[i].io.loop, &s->threads[i].stop);
	while (open_connections(s) > 0 && clock_ms() < until)
		usleep(10000);
	/* The doors first: what they hand on still arrives. */
	end_threads(s, s->inner_count, s->thread_count);
	end_threads(s, 0, s->inner_count);
}

void
server_free(struct server *s)
{
	if (!s)
		return;
	/* While it is open its inode's number is not given to another. */
	listen_file_remove(&s->socket);
	for (size_t i = 0; i < s->listener_count; i++)
		close(s->listeners[i].source.fd);
	for (unsigned i = 0; i < s->thread_count; i++) {
		conn_close_all(&s->threads[i].io);
		loop_free(s->threads[i].io.loop);
		free(s->threads[i].io.scratch);
	}
	tally_free(s->peers);
	tally_free(s->identities);
	free(s->listeners);
	free(s);
}
