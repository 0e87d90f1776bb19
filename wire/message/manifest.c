#include "manifest.h"

#include <math.h>
#include <string.h>

#include "bytes.h"
#include "task_kind.h"

#define VERSION 1
#define FLAGS_KNOWN \
	(MANIFEST_CLIPPED | MANIFEST_PARTIAL | MANIFEST_MASKED | MANIFEST_REPORT | \
	    MANIFEST_SECOND | MANIFEST_KIND_MASK)

static const uint8_t zeros[32];

static enum err
check_head(struct bytes_reader *r, const char *magic, size_t len, struct why *why)
{
	char got[4];

	bytes_get(r, got, sizeof(got));
	unsigned version = bytes_get_u16(r);
	unsigned stated = bytes_get_u16(r);
	if (memcmp(got, magic, sizeof(got)) != 0)
		return err_set(why, ERR_INVALID, "it does not begin with %s", magic);
	if (version != VERSION)
		return err_set(why, ERR_INVALID, "version %u is not known", version);
	if (stated != len)
		return err_set(why, ERR_INVALID, "stated length %u, expected %zu", stated, len);
	return ERR_OK;
}

static void
put_head(struct bytes_writer *w, const char *magic, uint16_t len)
{
	bytes_put(w, magic, 4);
	bytes_put_u16(w, VERSION);
	bytes_put_u16(w, len);
}

static void
read_fields(struct bytes_reader *r, struct manifest *m)
{
	bytes_get(r, m->job, sizeof(m->job));
	m->round = bytes_get_u64(r);
	bytes_get(r, m->base, sizeof(m->base));
	bytes_get(r, m->device, sizeof(m->device));
	bytes_get(r, m->task, sizeof(m->task));
	m->examples = bytes_get_u64(r);
	m->steps = bytes_get_u64(r);
	m->elements = bytes_get_u64(r);
	m->payload_bytes = bytes_get_u64(r);
	bytes_get(r, m->root, sizeof(m->root));
	m->codec = bytes_get_u16(r);
	m->optimizer = bytes_get_u16(r);
	m->flags = bytes_get_u32(r);
	m->block = bytes_get_u32(r);
	m->normaliser = bytes_get_f32(r);
	m->made_at_ms = bytes_get_u64(r);
	m->loss = bytes_get_f32(r);
	m->accuracy = bytes_get_f32(r);
	m->norm = bytes_get_f32(r);
	m->slice = bytes_get_u32(r);
	m->codec_seed = bytes_get_u64(r);
	bytes_get(r, m->report_hash, sizeof(m->report_hash));
	bytes_get(r, m->signature, sizeof(m->signature));
}

static bool
known_optimizer(unsigned id)
{
	return id == MANIFEST_SGD || id == MANIFEST_ADAM || id == MANIFEST_ADAMW ||
	    id == MANIFEST_EXTERNAL;
}

static enum err
check_numbers(const struct manifest *m, struct why *why)
{
	if (!isfinite(m->normaliser) || m->normaliser < 0)
		return err_set(why, ERR_INVALID, "normaliser is negative or not finite");
	if (!isfinite(m->norm) || m->norm < 0)
		return err_set(why, ERR_INVALID, "norm is negative or not finite");
	if (!isfinite(m->loss))
		return err_set(why, ERR_INVALID, "training loss is not finite");
	if (!isnan(m->accuracy) && !(m->accuracy >= 0 && m->accuracy <= 1))
		return err_set(why, ERR_INVALID, "training accuracy is outside 0..1");
	return ERR_OK;
}

static bool
is_zero(float x)
{
	return x == 0 && !signbit(x);
}

/* Nothing of a delta is in it: what no field of an evaluation uses is zero. */
static enum err
check_evaluation(const struct manifest *m, struct why *why)
{
	bool empty = m->steps == 0 && m->elements == 0 && m->payload_bytes == 0 &&
	    memcmp(m->root, zeros, sizeof(m->root)) == 0;
	bool plain = m->codec == 0 && m->optimizer == 0 && m->block == 0 && m->slice == 0 &&
	    m->codec_seed == 0 && is_zero(m->normaliser) && is_zero(m->loss) &&
	    is_zero(m->accuracy) && is_zero(m->norm);

	if (m->flags != (MANIFEST_REPORT | (uint32_t)TASK_EVALUATE << MANIFEST_KIND_SHIFT))
		return err_set(why, ERR_INVALID, "an evaluation has a report and no other flags");
	return empty && plain ? ERR_OK
			      : err_set(why, ERR_INVALID, "an evaluation has fields of a delta");
}

static enum err
check_delta(const struct manifest *m, struct why *why)
{
	if (m->steps == 0)
		return err_set(why, ERR_INVALID, "no local steps");
	if (m->elements == 0)
		return err_set(why, ERR_INVALID, "no elements");
	if (m->payload_bytes == 0)
		return err_set(why, ERR_INVALID, "the payload is empty");
	if (m->payload_bytes > MANIFEST_PAYLOAD_MAX)
		return err_set(why, ERR_LIMIT, "the payload is too long");
	if (!known_optimizer(m->optimizer))
		return err_set(why, ERR_INVALID, "optimizer id %u is not known", m->optimizer);
	return check_numbers(m, why);
}

static enum err
check_fields(const struct manifest *m, struct why *why)
{
	bool hashed = memcmp(m->report_hash, zeros, sizeof(m->report_hash)) != 0;

	if (m->flags & ~(uint32_t)FLAGS_KNOWN)
		return err_set(why, ERR_INVALID, "reserved flags are set");
	if (hashed != ((m->flags & MANIFEST_REPORT) != 0))
		return err_set(
		    why, ERR_INVALID, "report flag and report hash contradict each other");
	return manifest_kind(m) == TASK_EVALUATE ? check_evaluation(m, why) : check_delta(m, why);
}

enum task_kind
manifest_kind(const struct manifest *m)
{
	uint32_t kind = (m->flags & MANIFEST_KIND_MASK) >> MANIFEST_KIND_SHIFT;

	return kind < TASK_UNKNOWN ? (enum task_kind)kind : TASK_UNKNOWN;
}

enum err
manifest_decode(struct manifest *out, const void *data, size_t len, struct why *why)
{
	struct bytes_reader r = bytes_reader(data, len);
	struct manifest m;

	if (len != MANIFEST_LEN)
		return err_set(why, ERR_INVALID, "%zu bytes, a manifest has %d", len, MANIFEST_LEN);
	enum err e = check_head(&r, "RVD1", MANIFEST_LEN, why);
	if (e)
		return e;
	read_fields(&r, &m);
	e = check_fields(&m, why);
	if (!e)
		*out = m;
	return e;
}

void
manifest_encode(uint8_t out[MANIFEST_LEN], const struct manifest *in)
{
	struct bytes_writer w = bytes_writer(out, MANIFEST_LEN);

	put_head(&w, "RVD1", MANIFEST_LEN);
	bytes_put(&w, in->job, sizeof(in->job));
	bytes_put_u64(&w, in->round);
	bytes_put(&w, in->base, sizeof(in->base));
	bytes_put(&w, in->device, sizeof(in->device));
	bytes_put(&w, in->task, sizeof(in->task));
	bytes_put_u64(&w, in->examples);
	bytes_put_u64(&w, in->steps);
	bytes_put_u64(&w, in->elements);
	bytes_put_u64(&w, in->payload_bytes);
	bytes_put(&w, in->root, sizeof(in->root));
	bytes_put_u16(&w, in->codec);
	bytes_put_u16(&w, in->optimizer);
	bytes_put_u32(&w, in->flags);
	bytes_put_u32(&w, in->block);
	bytes_put_f32(&w, in->normaliser);
	bytes_put_u64(&w, in->made_at_ms);
	bytes_put_f32(&w, in->loss);
	bytes_put_f32(&w, in->accuracy);
	bytes_put_f32(&w, in->norm);
	bytes_put_u32(&w, in->slice);
	bytes_put_u64(&w, in->codec_seed);
	bytes_put(&w, in->report_hash, sizeof(in->report_hash));
	bytes_put(&w, in->signature, sizeof(in->signature));
}

uint64_t
manifest_chunks(uint64_t payload_bytes)
{
	return payload_bytes / MANIFEST_CHUNK + (payload_bytes % MANIFEST_CHUNK != 0);
}

uint64_t
manifest_body_bytes(uint64_t payload_bytes)
{
	return manifest_chunks(payload_bytes) * 32 + payload_bytes;
}

enum err
manifest_receipt_decode(struct receipt *out, const void *data, size_t len, struct why *why)
{
	struct bytes_reader r = bytes_reader(data, len);
	struct receipt receipt;

	if (len != RECEIPT_LEN)
		return err_set(why, ERR_INVALID, "%zu bytes, a receipt has %d", len, RECEIPT_LEN);
	enum err e = check_head(&r, "RVR1", RECEIPT_LEN, why);
	if (e)
		return e;
	bytes_get(&r, receipt.job, sizeof(receipt.job));
	receipt.round = bytes_get_u64(&r);
	bytes_get(&r, receipt.manifest_hash, sizeof(receipt.manifest_hash));
	receipt.accepted_at_ms = bytes_get_u64(&r);
	receipt.incarnation = bytes_get_u64(&r);
	if (!bytes_get_zeros(&r, 16))
		return err_set(why, ERR_INVALID, "reserved bytes are not zero");
	bytes_get(&r, receipt.signature, sizeof(receipt.signature));
	*out = receipt;
	return ERR_OK;
}

void
manifest_receipt_encode(uint8_t out[RECEIPT_LEN], const struct receipt *in)
{
	struct bytes_writer w = bytes_writer(out, RECEIPT_LEN);

	put_head(&w, "RVR1", RECEIPT_LEN);
	bytes_put(&w, in->job, sizeof(in->job));
	bytes_put_u64(&w, in->round);
	bytes_put(&w, in->manifest_hash, sizeof(in->manifest_hash));
	bytes_put_u64(&w, in->accepted_at_ms);
	bytes_put_u64(&w, in->incarnation);
	bytes_put_zeros(&w, 16);
	bytes_put(&w, in->signature, sizeof(in->signature));
}
