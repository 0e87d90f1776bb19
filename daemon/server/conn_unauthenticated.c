#include <string.h>

#include "clock.h"
#include "config.h"
#include "conn_inside.h"
#include "tally.h"

/* Bytes of a body that was parsed or an answer that was printed, and rows that were looked at: so many are charged as one request. */
#define ONE_MORE_BYTES 8192
#define ONE_MORE_ROWS 16
#define REFUSAL_COSTS 10 /* requests: each made us parse, look up and often verify for nothing */
#define CROWDED_WAIT_S 5
#define SMALL_ANSWER 4096
#define ASKED_NS \
	2000000 /* processor time for requests of strangers at a door in a batch of events */

/* --- who has not shown an identity */

static void
remove_from(struct conn *c)
{
	struct conn_unauthenticated *list = c->unauthenticated;

	*(c->older ? &c->older->newer : &list->oldest) = c->newer;
	*(c->newer ? &c->newer->older : &list->newest) = c->older;
	c->older = c->newer = NULL;
	c->unauthenticated = NULL;
}

void
conn_join_unauthenticated(struct conn *c, struct conn_unauthenticated *list)
{
	if (c->unauthenticated)
		remove_from(c);
	c->unauthenticated = list;
	if (!list)
		return;
	c->older = list->newest;
	*(list->newest ? &list->newest->newer : &list->oldest) = c;
	list->newest = c;
}

static bool
evict_from(struct conn_unauthenticated *list)
{
	struct conn *c = list->oldest;

	while (c && (c->state == CONN_BEGIN || c->state == CONN_BUSY))
		c = c->newer;
	if (!c)
		return false;
	conn_close(c);
	return true;
}

bool
conn_evict(struct io *io, bool handshake)
{
	return (!handshake && evict_from(&io->strangers)) || evict_from(&io->handshakes);
}

bool
conn_admit(struct io *io, const char *peer)
{
	const struct config *c = conn_config(io);
	bool strained = io->pace && pace_strained(&io->pace->handshakes);
	const struct tally_limits limits = {.most = c->handshakes,
	    .most_each = c->handshakes_per_address,
	    .crowd = c->handshakes / (strained ? 8 : 2)};

	enum tally_room room = peers_enter(io->peers, peer, &limits);
	if (room == TALLY_FULL && io->make_room(io, true))
		room = peers_enter(io->peers, peer, &limits);
	return room == TALLY_ROOM;
}

/* --- what an identity costs */

bool
conn_hold(struct conn *c, size_t bytes)
{
	/* Most answers are small, and each connection has one. */
	uint64_t held = bytes > SMALL_ANSWER ? bytes : 0;

	return !c->counted || held == c->held_bytes ||
	    tally_hold(c->io->identities, c->counted_as, &c->held_bytes, held,
		conn_config(c->io)->output_bytes);
}

void
conn_leave_tally(struct conn *c)
{
	(void)conn_hold(c, 0);
	if (c->counted)
		tally_leave(c->io->identities, c->counted_as);
	c->counted = false;
}

/* Counts the connection as one of its identity. With tokens a connection may have several identities, one after the other. */
static bool
enter_tally(struct conn *c)
{
	const struct config *cf = conn_config(c->io);
	const struct tally_limits limits = {
	    .most = UINT32_MAX, .most_each = cf->connections_per_device};

	if (c->counted && memcmp(c->counted_as, c->x.who.owner, TALLY_KEY) == 0)
		return true;
	conn_leave_tally(c);
	memcpy(c->counted_as, c->x.who.owner, TALLY_KEY);
	c->counted = tally_enter(c->io->identities, c->counted_as, &limits) == TALLY_ROOM;
	return c->counted;
}

uint32_t
conn_charge(struct conn *c)
{
	uint32_t most = conn_config(c->io)->requests_per_minute;

	if (!c->tls)
		return 0;
	if (!conn_is_known(c)) {
		/* Perhaps it was, a request ago. */
		conn_leave_tally(c);
		if (!c->unauthenticated)
			conn_join_unauthenticated(c, &c->io->strangers);
		return 0;
	}
	if (!enter_tally(c)) {
		c->x.request.keep_alive = false;
		return CROWDED_WAIT_S;
	}
	conn_join_unauthenticated(c, NULL);
	uint32_t wait =
	    most > 0 ? tally_take(c->io->identities, c->counted_as, most, clock_ms()) : 0;
	/* The handshake was for somebody, unless that one shakes hands instead of waiting. */
	if (c->door_ns > 0 && wait == 0)
		pace_refund(c->door, c->door_ns);
	c->door_ns = 0;
	return wait;
}

static void
count_more(struct conn *c, size_t requests)
{
	if (requests > 0 && conn_is_known(c) && c->counted)
		tally_add(c->io->identities, c->counted_as, (uint32_t)requests, clock_ms());
}

void
conn_count_body(struct conn *c)
{
	const struct exchange *x = &c->x;
	bool refused = x->response.status >= 400 && x->response.status < 500;
	bool streamed = x->route && x->route->kind == ROUTE_STREAM;
	uint64_t body = streamed ? 0 : c->body_len - c->body_left;

	/* Being told to wait is no failure: who waits would wait for ever. */
	if (x->response.status != 429)
		count_more(c, body / ONE_MORE_BYTES + (refused ? REFUSAL_COSTS - 1 : 0));
}

/* Rows that are shown were looked at, too, so only the larger of the two charges is taken. */
void
conn_count_answer(struct conn *c, size_t bytes)
{
	uint64_t printed = c->x.response.printed ? bytes / ONE_MORE_BYTES : 0,
		 looked = c->x.looked / ONE_MORE_ROWS;

	c->x.looked = 0;
	count_more(c, printed > looked ? printed : looked);
}

/* --- whose turn it is */

bool
conn_may_shake(const struct conn *c)
{
	/* The end of a handshake that has begun comes first: who began it is the likelier to be somebody. */
	return !c->io->pace || c->door_ns > 0 || !pace_owes(&c->io->pace->handshakes);
}

bool
conn_may_ask(const struct conn *c)
{
	/* A connection with a certificate is about to move to an I/O thread. */
	return !c->io->pace || !c->unauthenticated || c->has_cert || c->io->line.in_turn;
}

static void
on_again(struct loop_post *p)
{
	struct conn *c = (struct conn *)((char *)p - offsetof(struct conn, again));

	c->again_posted = false;
	conn_drive(c);
}

static void
stand_in_line(struct conn *c)
{
	struct conn_line *line = &c->io->line;

	/* Else epoll would tell of it again and again. */
	conn_want(c, 0);
	c->again.next = NULL;
	*(line->last ? &line->last->next : &line->first) = &c->again;
	line->last = &c->again;
}

static struct conn *
leave_line(struct conn_line *line)
{
	struct loop_post *p = line->first;

	line->first = p->next;
	if (!line->first)
		line->last = NULL;
	struct conn *c = (struct conn *)((char *)p - offsetof(struct conn, again));
	c->again_posted = false;
	return c;
}

void
conn_forget_line(struct io *io)
{
	while (io->line.first)
		(void)leave_line(&io->line);
}

static void
on_line(struct loop_post *p)
{
	((struct conn_line *)((char *)p - offsetof(struct conn_line, post)))->posted = false;
}

void
conn_serve_line(struct io *io)
{
	struct conn_line *line = &io->line;

	line->in_turn = true;
	/* What has begun before it stood in line may have used up the time: one goes on in any case. */
	for (bool first = true;
	     line->first && (first || io->asked_ns < ASKED_NS) && !pace_owes(&io->pace->requests);
	     first = false) {
		struct conn *c = leave_line(line);
		conn_want(c, EPOLLIN);
		conn_drive(c);
	}
	line->in_turn = false;
	if (line->first && !line->posted) {
		line->posted = true;
		line->post.fn = on_line;
		loop_post(io->loop, &line->post);
	}
}

static void
on_arrive(struct loop_post *p)
{
	struct conn *c = (struct conn *)((char *)p - offsetof(struct conn, again));

	c->again_posted = false;
	conn_list(c);
	conn_join_unauthenticated(c, &c->io->strangers);
	c->interest = EPOLLIN;
	conn_change_state(c, CONN_HEAD);
	if (loop_add(c->io->loop, &c->source, EPOLLIN) == ERR_OK)
		conn_drive(c);
	else
		conn_close(c);
}

void
conn_move(struct conn *c, struct io *to)
{
	struct io *from = c->io;

	loop_remove(from->loop, &c->source);
	conn_join_unauthenticated(c, NULL);
	conn_unlist(c);
	c->io = to;
	c->x.loop = to->loop;
	/* Never counted as none. */
	atomic_fetch_add(&to->count, 1);
	atomic_fetch_sub(&from->count, 1);
	c->again_posted = true;
	c->again.fn = on_arrive;
	loop_post(to->loop, &c->again);
}

bool
conn_yield(struct conn *c)
{
	if (c->again_posted)
		return false;
	c->again_posted = true;
	if (c->io->pace && c->unauthenticated) {
		stand_in_line(c);
		return false;
	}
	c->again.fn = on_again;
	loop_post(c->io->loop, &c->again);
	return false;
}
