#ifndef RELAY_FLOW_H
#define RELAY_FLOW_H
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "prng.h"

/* The bytes that relay.c hands on in one direction of a connection: late, at a rate, spoilt or twice. */

#define FLOW_BYTES 262144
#define PIECES_MAX 128
#define NEVER UINT64_MAX

enum ending { END_RST, END_FIN, END_UP, END_DOWN, END_FREEZE, END_ANY };

struct settings {
	uint64_t delay, rate, cut_min, cut_max, cutbytes, corrupt, repeat, stall;
	enum ending end;
};

struct counts {
	uint64_t connections, dropped, stalled, ended[END_ANY], bytes_up, bytes_down, corrupted,
	    repeated;
};

struct piece {
	uint64_t due;
	size_t len;
};

/* One direction of a connection. */
struct flow {
	int in, out;
	uint8_t data[FLOW_BYTES];
	size_t len, piece_count;
	struct piece pieces[PIECES_MAX];
	uint64_t seen, ready; /* bytes read; when the rate lets the next one out */
	uint64_t corrupt_at, repeat_at; /* of `seen` */
	bool ended, told, void_; /* EOF came; went on; bytes go nowhere */
	bool blocked;
};

static struct counts counts;
static struct prng rng;

static uint64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t
draw(uint64_t mean)
{
	return mean ? 1 + prng_below(&rng, 2 * mean) : NEVER;
}

static void
start_flow(struct flow *f, const struct settings *s, int in, int out)
{
	f->in = in;
	f->out = out;
	f->len = f->piece_count = 0;
	f->seen = f->ready = 0;
	f->corrupt_at = draw(s->corrupt);
	f->repeat_at = draw(s->repeat);
	f->ended = f->told = f->void_ = f->blocked = false;
}

static void
add_piece(struct flow *f, const struct settings *s, size_t len)
{
	f->pieces[f->piece_count++] = (struct piece){now_us() + s->delay * 1000, len};
	f->len += len;
}

static bool
has_room(const struct flow *f)
{
	return f->len < FLOW_BYTES / 2 && f->piece_count + 2 <= PIECES_MAX;
}

/* What passes may be spoilt and may come twice. */
static void
take_bytes(struct flow *f, const struct settings *s, size_t len)
{
	uint8_t *at = f->data + f->len;
	uint64_t before = f->seen;

	f->seen += len;
	if (s->corrupt && f->corrupt_at == NEVER)
		f->corrupt_at = before + draw(s->corrupt);
	if (s->repeat && f->repeat_at == NEVER)
		f->repeat_at = before + draw(s->repeat);
	while (s->corrupt && f->corrupt_at <= f->seen) {
		at[f->corrupt_at - before - 1] ^= (uint8_t)(1 + prng_below(&rng, 255));
		f->corrupt_at += draw(s->corrupt);
		counts.corrupted++;
	}
	add_piece(f, s, len);
	if (!s->repeat || f->repeat_at > f->seen)
		return;
	memcpy(at + len, at, len);
	add_piece(f, s, len);
	f->repeat_at = f->seen + draw(s->repeat);
	counts.repeated++;
}

/* False when the connection is over. */
static bool
pull(struct flow *f, const struct settings *s)
{
	static uint8_t nowhere[FLOW_BYTES];
	size_t room = (FLOW_BYTES - f->len) / 2;
	if (!f->void_ && !has_room(f))
		return true;
	ssize_t n = f->void_ ? recv(f->in, nowhere, sizeof(nowhere), 0)
			     : recv(f->in, f->data + f->len, room < 4096 ? room : 4096, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		f->ended = true;
	else if (!f->void_)
		take_bytes(f, s, (size_t)n);
	return n > 0 || !f->void_;
}

static void
forget_sent(struct flow *f, size_t n)
{
	f->len -= n;
	memmove(f->data, f->data + n, f->len);
	f->pieces[0].len -= n;
	if (f->pieces[0].len > 0)
		return;
	f->piece_count--;
	memmove(f->pieces, f->pieces + 1, f->piece_count * sizeof(*f->pieces));
}

static uint64_t
due_at(const struct flow *f)
{
	if (f->piece_count == 0)
		return NEVER;
	return f->pieces[0].due > f->ready ? f->pieces[0].due : f->ready;
}

static bool
push(struct flow *f, const struct settings *s, uint64_t *bytes)
{
	uint64_t now = now_us();

	f->blocked = false;
	while (due_at(f) <= now) {
		size_t most = s->rate ? s->rate / 50 + 256 : FLOW_BYTES;
		size_t len = f->pieces[0].len < most ? f->pieces[0].len : most;
		ssize_t n = send(f->out, f->data, len, MSG_NOSIGNAL);
		if (n < 0) {
			f->blocked = errno == EAGAIN || errno == EINTR;
			return f->blocked;
		}
		*bytes += (uint64_t)n;
		forget_sent(f, (size_t)n);
		if (s->rate)
			f->ready =
			    (f->ready > now ? f->ready : now) + (uint64_t)n * 1000000 / s->rate;
	}
	if (f->ended && !f->told && f->piece_count == 0) {
		f->told = true;
		shutdown(f->out, SHUT_WR);
	}
	return true;
}

#endif
