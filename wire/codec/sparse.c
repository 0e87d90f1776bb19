#include "sparse.h"

#include <math.h>
#include <string.h>

#include "half.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the table is used in place");

#define BLOCK 16384
#define VALUE sizeof(uint16_t)
#define ENTRY 3 /* bytes of an entry that follows within SHORT elements; the others have one more */
#define SHORT 128 /* gaps below it take one byte */
#define NOTHING 0x8000 /* magnitudes, as bits, up to this one are zero as bf16 */
#define NOT_FINITE 0x7f800000

static uint64_t
blocks_of(uint64_t elements)
{
	return elements / BLOCK + (elements % BLOCK != 0);
}

static uint32_t
block_elements(const struct codec_params *p, uint64_t block)
{
	uint64_t left = p->elements - block * BLOCK;

	return left < BLOCK ? (uint32_t)left : BLOCK;
}

static uint64_t
entries_of(const struct codec_params *p)
{
	return p->entries == 0 || p->entries > p->elements ? p->elements : p->entries;
}

uint64_t
codec_sparse_most(uint64_t elements, uint64_t entries)
{
	uint64_t table = blocks_of(elements) * CODEC_TABLE_ENTRY, wide = elements / (SHORT + 1);

	if (elements > CODEC_SPARSE_ELEMENTS_MAX)
		return UINT64_MAX;
	if (entries >= elements)
		return table + ENTRY * elements;
	return table + ENTRY * entries + (wide < entries ? wide : entries);
}

static uint64_t
payload_bytes(uint64_t elements)
{
	return codec_sparse_most(elements, elements);
}

static uint32_t
table_end(const uint8_t *table, uint64_t block)
{
	uint32_t end;

	memcpy(&end, table + block * CODEC_TABLE_ENTRY, sizeof(end));
	return end;
}

/* --- encoding */

/* What is sent: every magnitude above `least`, and the first `ties` that equal it. */
struct choice {
	uint32_t least;
	uint64_t ties;
};

static uint32_t
magnitude(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits & 0x7fffffff;
}

/* Hands all values to take, a block at a time. */
static enum err
walk(const struct codec_elements *from, const struct codec_params *p,
    enum err (*take)(void *context, const float *values, uint32_t n), void *context)
{
	float values[BLOCK];
	enum err e = ERR_OK;

	for (uint64_t b = 0; !e && b < blocks_of(p->elements); b++) {
		uint32_t n = block_elements(p, b);
		e = from->read(from->context, b * BLOCK, n, values);
		if (!e)
			e = take(context, values, n);
	}
	return e;
}

/* Counts what could be sent. */
static enum err
count_candidates(void *context, const float *values, uint32_t n)
{
	uint64_t *count = context;
	uint32_t bad = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t m = magnitude(values[i]);
		*count += m > NOTHING;
		bad |= m >= NOT_FINITE;
	}
	return bad ? ERR_NUMERIC : ERR_OK;
}

/* How many magnitudes have the digits so far, by their next one. */
struct digits {
	uint32_t found, known; /* the digits so far, and which bits they are */
	uint32_t shift, mask; /* of the next one */
	uint32_t counts[2048];
};

static enum err
count_digits(void *context, const float *values, uint32_t n)
{
	struct digits *d = context;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t m = magnitude(values[i]);
		if ((m & d->known) == d->found)
			d->counts[m >> d->shift & d->mask]++;
	}
	return ERR_OK;
}

/* The magnitude of rank k from the top, by its digits: three passes, whatever the values. */
static enum err
choose(
    struct choice *out, const struct codec_elements *from, const struct codec_params *p, uint64_t k)
{
	static const uint32_t shifts[] = {20, 10, 0}, digits[] = {2048, 1024, 1024};
	struct digits d = {.found = 0};
	enum err e = ERR_OK;

	for (size_t pass = 0; !e && pass < 3; pass++) {
		d.shift = shifts[pass];
		d.mask = digits[pass] - 1;
		memset(d.counts, 0, sizeof(d.counts));
		e = walk(from, p, count_digits, &d);
		uint32_t digit = d.mask;
		for (; !e && d.counts[digit] < k; digit--) {
			k -= d.counts[digit];
			/* Of the same values as before there are so many. */
			if (digit == 0)
				return ERR_INVALID;
		}
		d.found |= digit << d.shift;
		d.known |= d.mask << d.shift;
	}
	*out = (struct choice){d.found, k};
	return e;
}

static uint8_t *
put_entry(uint8_t *out, uint32_t gap, uint16_t value)
{
	if (gap >= SHORT) {
		*out++ = (uint8_t)(gap % SHORT | SHORT);
		gap /= SHORT;
	}
	*out++ = (uint8_t)gap;
	memcpy(out, &value, VALUE);
	return out + VALUE;
}

static enum err
put_block(uint8_t **out, const float *values, uint32_t n, struct choice *c)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t m = magnitude(values[i]);
		if (m < c->least || (m == c->least && c->ties == 0))
			continue;
		c->ties -= m == c->least;
		uint16_t value = codec_half_to_bf16(values[i]);
		if ((value & 0x7f80) == 0x7f80)
			return ERR_NUMERIC;
		*out = put_entry(*out, i - next, value);
		next = i + 1;
	}
	return ERR_OK;
}

struct writer {
	const struct codec_sink *to;
	struct choice choice;
	uint64_t block, begin, end; /* of the payload: behind the table, and what was written */
};

/* One block, and its end in the table. */
static enum err
write_block(void *context, const float *values, uint32_t n)
{
	uint8_t bytes[(ENTRY + 1) * BLOCK], *out = bytes;
	struct writer *w = context;
	enum err e = put_block(&out, values, n, &w->choice);

	if (e)
		return e;
	size_t len = (size_t)(out - bytes);
	uint32_t end = (uint32_t)(w->end + len - w->begin);
	if (len > 0)
		e = w->to->write(w->to->context, bytes, len, w->end);
	if (!e)
		e = w->to->write(w->to->context, &end, sizeof(end), w->block * CODEC_TABLE_ENTRY);
	w->end += len;
	w->block++;
	return e;
}

static enum err
stream(const struct codec_sink *to, uint64_t *payload_len, const struct codec_elements *from,
    const struct codec_params *p)
{
	struct writer w = {
	    .to = to, .choice = {NOTHING, 0}, .begin = blocks_of(p->elements) * CODEC_TABLE_ENTRY};
	uint64_t candidates = 0, most = entries_of(p);
	enum err e = walk(from, p, count_candidates, &candidates);

	if (!e && p->elements > CODEC_SPARSE_ELEMENTS_MAX)
		e = ERR_LIMIT;
	if (!e && candidates > most)
		e = choose(&w.choice, from, p, most);
	w.end = w.begin;
	if (!e)
		e = walk(from, p, write_block, &w);
	*payload_len = w.end;
	return e;
}

static enum err
write_memory(void *payload, const void *data, size_t len, uint64_t at)
{
	memcpy((uint8_t *)payload + at, data, len);
	return ERR_OK;
}

static enum err
encode(void *payload, uint64_t *payload_len, const float *values, const struct codec_params *p)
{
	const struct codec_elements from = codec_elements_in(values);
	const struct codec_sink to = {write_memory, payload};

	return stream(&to, payload_len, &from, p);
}

/* --- entries, a byte after the other */

struct entry {
	uint8_t bytes[ENTRY + 1];
	uint8_t have;
	uint32_t next; /* the least index that may come, within the block */
};

/* ERR_AGAIN: the entry is not complete; ERR_OK: it is, and stands at next - 1. `elements` of the block. */
static enum err
take_byte(struct entry *e, uint8_t byte, uint32_t elements, float *value)
{
	uint16_t half;

	e->bytes[e->have++] = byte;
	size_t wide = e->bytes[0] >= SHORT;
	if (e->have < ENTRY + wide)
		return ERR_AGAIN;
	uint32_t gap = e->bytes[0] % SHORT + (wide ? e->bytes[1] * SHORT : 0u);
	/* The shortest form, and the second byte the last. */
	if (wide && (e->bytes[1] == 0 || e->bytes[1] >= SHORT))
		return ERR_INVALID;
	memcpy(&half, e->bytes + 1 + wide, VALUE);
	if ((half & 0x7f80) == 0x7f80)
		return ERR_NUMERIC;
	if ((half & 0x7fff) == 0 || gap >= elements - e->next)
		return ERR_INVALID;
	*value = codec_half_from_bf16(half);
	e->next += gap + 1;
	e->have = 0;
	return ERR_OK;
}

/* --- checking */

struct state {
	double sum;
	uint64_t entries;
	uint64_t block;
	struct entry entry; /* that the last call left unfinished */
	uint8_t spare[28];
};
_Static_assert(sizeof(struct state) == 64, "the state must fit the carry exactly");

static enum err
check_table(const struct codec_params *p, uint64_t bytes)
{
	uint64_t before = 0;

	for (uint64_t b = 0; b * CODEC_TABLE_ENTRY < bytes; b++) {
		uint64_t end = table_end(p->table, b);
		if (end < before || end - before > (uint64_t)ENTRY * block_elements(p, b))
			return ERR_INVALID;
		before = end;
	}
	return before == p->payload - bytes ? ERR_OK : ERR_INVALID;
}

/* Bytes of one block. */
static enum err
take(struct state *s, const struct codec_params *p, const uint8_t *data, size_t len)
{
	uint32_t elements = block_elements(p, s->block);
	float value;

	for (size_t i = 0; i < len; i++) {
		enum err e = take_byte(&s->entry, data[i], elements, &value);
		if (e == ERR_AGAIN)
			continue;
		if (e)
			return e;
		if (++s->entries > entries_of(p))
			return ERR_INVALID;
		s->sum += (double)value * (double)value;
	}
	return ERR_OK;
}

/* Bytes behind the table, the first of them at `at` from its end. */
static enum err
take_blocks(
    struct state *s, const struct codec_params *p, uint64_t at, const uint8_t *data, size_t len)
{
	while (len > 0) {
		uint64_t end = table_end(p->table, s->block);
		if (at == end) {
			s->block++;
			s->entry.next = 0;
			continue;
		}
		size_t n = len < end - at ? len : (size_t)(end - at);
		enum err e = take(s, p, data, n);
		at += n;
		data += n;
		len -= n;
		if (e)
			return e;
		if (at == end && s->entry.have > 0)
			return ERR_INVALID;
	}
	return ERR_OK;
}

static enum err
check(const struct codec_params *p, uint64_t at, const void *data, size_t len, double *sum_squares,
    uint8_t carry[64])
{
	uint64_t bytes = blocks_of(p->elements) * CODEC_TABLE_ENTRY;
	const uint8_t *from = data;
	struct state s;

	if (p->elements > CODEC_SPARSE_ELEMENTS_MAX || p->payload < bytes || at > p->payload ||
	    len > p->payload - at)
		return ERR_INVALID;
	if (len == 0)
		return ERR_OK;
	memcpy(&s, carry, sizeof(s));
	size_t head = at >= bytes ? 0 : len < bytes - at ? len : (size_t)(bytes - at);
	memcpy(p->table + (head ? at : 0), from, head);
	at += head;
	enum err e = head > 0 && at == bytes ? check_table(p, bytes) : ERR_OK;
	if (!e && len > head)
		e = take_blocks(&s, p, at - bytes, from + head, len - head);
	if (!e && at + (len - head) == p->payload)
		*sum_squares += s.sum;
	memcpy(carry, &s, sizeof(s));
	return e;
}

/* --- decoding */

static enum err
decode(const struct codec_params *p, uint64_t first, size_t count, const void *data, size_t len,
    float *out)
{
	const uint8_t *from = data;
	struct entry entry = {.have = 0};
	uint64_t block = first / BLOCK;
	size_t inside = (size_t)(first % BLOCK);
	float value;

	if (first > p->elements || count > p->elements - first || count > BLOCK - inside)
		return ERR_INVALID;
	if (count == 0)
		return len == 0 ? ERR_OK : ERR_INVALID;
	memset(out, 0, count * sizeof(*out));
	uint32_t elements = block_elements(p, block);
	for (size_t i = 0; i < len; i++) {
		enum err e = take_byte(&entry, from[i], elements, &value);
		if (e == ERR_AGAIN)
			continue;
		if (e)
			return e;
		size_t index = entry.next - 1;
		if (index >= inside && index - inside < count)
			out[index - inside] = value;
	}
	return entry.have == 0 ? ERR_OK : ERR_INVALID;
}

const struct codec codec_sparse = {
    .id = CODEC_SPARSE,
    .name = "sparse",
    .block = BLOCK,
    .fixed_size = false,
    .payload_bytes = payload_bytes,
    .encode = encode,
    .stream = stream,
    .check = check,
    .decode = decode,
};
