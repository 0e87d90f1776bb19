#include "record.h"

#include <string.h>

#include "bytes.h"
#include "job.h"

#define MAGIC "RVC1"
#define VERSION 1
#define ZEROS 72

/* A round's record names every report that came in 67 bytes of a body, and more than the goal may come. */
_Static_assert(JOB_GOAL_MAX * 67 < RECORD_BODY_MAX / 5 * 4, "room for more than the goal");

static enum err
check_head(struct bytes_reader *r, struct why *why)
{
	char magic[4];

	bytes_get(r, magic, sizeof(magic));
	unsigned version = bytes_get_u16(r);
	unsigned stated = bytes_get_u16(r);
	if (memcmp(magic, MAGIC, sizeof(magic)) != 0)
		return err_set(why, ERR_INVALID, "it does not begin with " MAGIC);
	if (version != VERSION)
		return err_set(why, ERR_INVALID, "version %u is not known", version);
	if (stated != RECORD_LEN)
		return err_set(
		    why, ERR_INVALID, "stated length %u, expected %d", stated, RECORD_LEN);
	return ERR_OK;
}

enum err
record_decode(struct record *out, const void *data, size_t len, struct why *why)
{
	struct bytes_reader r = bytes_reader(data, len);
	struct record e;

	if (len != RECORD_LEN)
		return err_set(why, ERR_INVALID, "%zu bytes, an entry has %d", len, RECORD_LEN);
	enum err result = check_head(&r, why);
	if (result)
		return result;
	e.seq = bytes_get_u64(&r);
	e.at_ms = bytes_get_u64(&r);
	e.incarnation = bytes_get_u64(&r);
	bytes_get(&r, e.previous, sizeof(e.previous));
	bytes_get(&r, e.body_hash, sizeof(e.body_hash));
	bytes_get(&r, e.job, sizeof(e.job));
	e.round = bytes_get_u64(&r);
	if (!bytes_get_zeros(&r, ZEROS))
		return err_set(why, ERR_INVALID, "reserved bytes are not zero");
	if (e.seq == 0)
		return err_set(why, ERR_INVALID, "entries are numbered from 1");
	bytes_get(&r, e.signature, sizeof(e.signature));
	*out = e;
	return ERR_OK;
}

void
record_encode(uint8_t out[RECORD_LEN], const struct record *in)
{
	struct bytes_writer w = bytes_writer(out, RECORD_LEN);

	bytes_put(&w, MAGIC, 4);
	bytes_put_u16(&w, VERSION);
	bytes_put_u16(&w, RECORD_LEN);
	bytes_put_u64(&w, in->seq);
	bytes_put_u64(&w, in->at_ms);
	bytes_put_u64(&w, in->incarnation);
	bytes_put(&w, in->previous, sizeof(in->previous));
	bytes_put(&w, in->body_hash, sizeof(in->body_hash));
	bytes_put(&w, in->job, sizeof(in->job));
	bytes_put_u64(&w, in->round);
	bytes_put_zeros(&w, ZEROS);
	bytes_put(&w, in->signature, sizeof(in->signature));
}
