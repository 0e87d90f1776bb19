#include "tfevents.h"

#include <string.h>

#include "bytes.h"

#define POLYNOMIAL 0x82f63b78u /* reversed */
#define MASK_ADDED 0xa282ead8u
#define HEAD 12 /* length and its CRC */
#define FRAME (HEAD + 4)

/* Protobuf: a field's number and how its value is encoded. */
enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
#define FIELD(number, wire) ((unsigned)(number) << 3 | (wire))
#define EVENT_WALL FIELD(1, FIXED64)
#define EVENT_STEP FIELD(2, VARINT)
#define EVENT_VERSION FIELD(3, BYTES)
#define EVENT_SUMMARY FIELD(5, BYTES)
#define SUMMARY_VALUE FIELD(1, BYTES)
#define VALUE_TAG FIELD(1, BYTES)
#define VALUE_SIMPLE FIELD(2, FIXED32)

uint32_t
tfevents_crc(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
	}
	return ~crc;
}

uint32_t
tfevents_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + MASK_ADDED;
}

/* --- Writing */

static enum err
put_little(struct buf *out, uint64_t v, size_t bytes)
{
	uint8_t text[8];

	for (size_t i = 0; i < bytes; i++)
		text[i] = (uint8_t)(v >> (8 * i));
	return buf_append(out, text, bytes);
}

static enum err
put_varint(struct buf *out, uint64_t v)
{
	uint8_t text[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		text[n++] = (uint8_t)(v | 0x80);
	text[n++] = (uint8_t)v;
	return buf_append(out, text, n);
}

static enum err
put_double(struct buf *out, unsigned field, double v)
{
	uint64_t bits;
	enum err e = put_varint(out, field);

	memcpy(&bits, &v, sizeof(bits));
	return e ? e : put_little(out, bits, 8);
}

static enum err
put_bytes(struct buf *out, unsigned field, const void *data, size_t len)
{
	enum err e = put_varint(out, field);

	if (!e)
		e = put_varint(out, len);
	return e ? e : buf_append(out, data, len);
}

static enum err
put_record(struct buf *out, const struct buf *event)
{
	size_t start = out->len;
	enum err e = put_little(out, event->len, 8);

	if (!e)
		e = put_little(out, tfevents_mask(tfevents_crc(out->data + start, 8)), 4);
	if (!e)
		e = buf_append(out, event->data, event->len);
	if (!e)
		e = put_little(out, tfevents_mask(tfevents_crc(event->data, event->len)), 4);
	if (e)
		out->len = start;
	return e;
}

enum err
tfevents_begin(struct buf *out, double wall)
{
	static const char version[] = "brain.Event:2";
	struct buf event;

	buf_init(&event, TFEVENTS_RECORD_MAX);
	enum err e = put_double(&event, EVENT_WALL, wall);
	if (!e)
		e = put_bytes(&event, EVENT_VERSION, version, sizeof(version) - 1);
	if (!e)
		e = put_record(out, &event);
	buf_deinit(&event);
	return e;
}

void
tfevents_init(struct tfevents *t)
{
	t->err = ERR_OK;
	/* The event's own fields have room beside it. */
	buf_init(&t->summary, TFEVENTS_RECORD_MAX - 64);
}

void
tfevents_deinit(struct tfevents *t)
{
	buf_deinit(&t->summary);
}

void
tfevents_scalar(struct tfevents *t, const char *tag, double value)
{
	struct buf v;
	float single = (float)value;
	uint32_t bits;

	memcpy(&bits, &single, sizeof(bits));
	buf_init(&v, TFEVENTS_RECORD_MAX);
	if (!t->err)
		t->err = put_bytes(&v, VALUE_TAG, tag, strlen(tag));
	if (!t->err)
		t->err = put_varint(&v, VALUE_SIMPLE);
	if (!t->err)
		t->err = put_little(&v, bits, 4);
	if (!t->err)
		t->err = put_bytes(&t->summary, SUMMARY_VALUE, v.data, v.len);
	buf_deinit(&v);
}

enum err
tfevents_end(struct buf *out, struct tfevents *t, double wall, uint64_t step)
{
	struct buf event;
	enum err e = t->err;

	buf_init(&event, TFEVENTS_RECORD_MAX);
	if (!e)
		e = put_double(&event, EVENT_WALL, wall);
	if (!e)
		e = put_varint(&event, EVENT_STEP);
	if (!e)
		e = put_varint(&event, step);
	if (!e)
		e = put_bytes(&event, EVENT_SUMMARY, buf_str(&t->summary), t->summary.len);
	if (!e && t->summary.len > 0)
		e = put_record(out, &event);
	buf_deinit(&event);
	buf_reset(&t->summary);
	t->err = ERR_OK;
	return e;
}

/* --- Reading */

/* The message's length of the record that begins here, or SIZE_MAX if there is no whole one. */
static size_t
record(const uint8_t *p, size_t left)
{
	struct bytes_reader head = bytes_reader(p, left);
	uint64_t len = bytes_get_u64(&head);
	uint32_t crc = bytes_get_u32(&head);

	if (left < FRAME || len > TFEVENTS_RECORD_MAX || len > left - FRAME ||
	    crc != tfevents_mask(tfevents_crc(p, 8)))
		return SIZE_MAX;
	struct bytes_reader foot = bytes_reader(p + HEAD + len, 4);
	if (bytes_get_u32(&foot) != tfevents_mask(tfevents_crc(p + HEAD, (size_t)len)))
		return SIZE_MAX;
	return (size_t)len;
}

static bool
get_varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
		uint8_t byte = *(*p)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = v;
			return true;
		}
	}
	return false;
}

/* Steps over a value; false if it is not all there. */
static bool
skip(const uint8_t **p, const uint8_t *end, uint64_t field)
{
	uint64_t n = 0;

	switch ((enum wire)(field & 7)) {
	case VARINT:
		return get_varint(p, end, &n);
	case FIXED64:
		n = 8;
		break;
	case FIXED32:
		n = 4;
		break;
	case BYTES:
		if (!get_varint(p, end, &n))
			return false;
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(end - *p))
		return false;
	*p += n;
	return true;
}

/* False if it is no message. */
static bool
note_event(struct tfevents_past *past, const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;
	uint64_t field, step = 0;
	bool summary = false;

	while (p < end) {
		if (!get_varint(&p, end, &field))
			return false;
		summary = summary || field == EVENT_SUMMARY;
		if (field == EVENT_STEP ? !get_varint(&p, end, &step) : !skip(&p, end, field))
			return false;
	}
	if (summary && (!past->steps || step > past->last))
		past->last = step;
	past->steps = past->steps || summary;
	return true;
}

enum err
tfevents_read(struct tfevents_past *past, const uint8_t *data, size_t len, struct why *why)
{
	size_t at = 0, n;

	*past = (struct tfevents_past){0};
	while (at < len && (n = record(data + at, len - at)) != SIZE_MAX) {
		if (!note_event(past, data + at + HEAD, n))
			return err_set(why, ERR_CORRUPT, "no event at byte %zu", at);
		at += FRAME + n;
		past->records++;
	}
	past->bytes = at;
	if (len - at > TFEVENTS_RECORD_MAX + FRAME || (past->records == 0 && len >= 64))
		return err_set(why, ERR_CORRUPT, "no record at byte %zu", at);
	return ERR_OK;
}
