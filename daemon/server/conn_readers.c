#include "conn_inside.h"
#include "route.h"

/* Readers: parked requests that wait for a change of a job. A change touches no other connection. */

void
conn_enter_readers(struct conn *c)
{
	c->turn_ms = 0;
	if (c->reader_at)
		return;
	c->reader_at = &c->io->readers;
	c->next_reader = c->io->readers;
	if (c->next_reader)
		c->next_reader->reader_at = &c->next_reader;
	c->io->readers = c;
}

void
conn_leave_readers(struct conn *c)
{
	if (!c->reader_at)
		return;
	*c->reader_at = c->next_reader;
	if (c->next_reader)
		c->next_reader->reader_at = c->reader_at;
	c->reader_at = NULL;
}

void
conn_tell_readers(struct io *io, uint64_t now_ms)
{
	uint64_t count = 0, i = 0;

	for (struct conn *c = io->readers; c; c = c->next_reader)
		count += c->turn_ms == 0;
	for (struct conn *c = io->readers; c; c = c->next_reader)
		if (c->turn_ms == 0)
			c->turn_ms = now_ms + i++ * CONN_READERS_MS / count;
	conn_turn_readers(io, now_ms);
}

void
conn_turn_readers(struct io *io, uint64_t now_ms)
{
	uint64_t next_ms = UINT64_MAX;

	for (struct conn *c = io->readers, *next; c; c = next) {
		next = c->next_reader;
		if (c->turn_ms == 0)
			continue;
		if (c->turn_ms > now_ms) {
			next_ms = c->turn_ms < next_ms ? c->turn_ms : next_ms;
			continue;
		}
		conn_poll_again(c);
		conn_drive(c);
	}
	loop_tick_by(io->loop, next_ms);
}

void
conn_check_readers(struct io *io)
{
	for (struct conn *c = io->readers, *next; c; c = next) {
		next = c->next_reader;
		if (!conn_still_may(c))
			conn_drive(c);
	}
}
