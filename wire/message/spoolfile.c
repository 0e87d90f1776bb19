#include "spoolfile.h"

#include <string.h>

#include "bytes.h"
#include "task_kind.h"

#define VERSION 1
#define SEALED 1u
#define SPARE (SPOOLFILE_TAGGED - 32 - MANIFEST_LEN)

enum err
spoolfile_decode(struct spoolfile *out, const void *data, size_t len, struct why *why)
{
	static const struct spoolfile plain;
	struct bytes_reader r = bytes_reader(data, len);
	struct manifest m;
	char magic[4];

	if (len != SPOOLFILE_HEAD)
		return err_set(why, ERR_INVALID, "the head has %zu bytes, not 512", len);
	bytes_get(&r, magic, sizeof(magic));
	uint16_t version = bytes_get_u16(&r);
	uint16_t length = bytes_get_u16(&r);
	if (memcmp(magic, "RVS1", 4) != 0)
		return err_set(why, ERR_INVALID, "the magic is not RVS1");
	if (version != VERSION)
		return err_set(why, version > VERSION ? ERR_UNSUPPORTED : ERR_INVALID,
		    "version %u; this build reads %u", version, VERSION);
	uint32_t flags = bytes_get_u32(&r);
	bytes_get(&r, out->nonce, SPOOLFILE_NONCE);
	bytes_get(&r, out->key_id, SPOOLFILE_KEY_ID);
	bytes_get(&r, out->manifest, MANIFEST_LEN);
	bool zeros = bytes_get_zeros(&r, SPARE);
	bytes_get(&r, out->tag, sizeof(out->tag));
	out->sealed = flags & SEALED;
	if (length != SPOOLFILE_HEAD || (flags & ~SEALED) || !zeros)
		return err_set(why, ERR_INVALID, "length or reserved bytes are wrong");
	if (!out->sealed &&
	    (memcmp(out->nonce, plain.nonce, SPOOLFILE_NONCE) != 0 ||
		memcmp(out->key_id, plain.key_id, SPOOLFILE_KEY_ID) != 0))
		return err_set(why, ERR_INVALID, "a nonce or key id without encryption");
	enum err e = manifest_decode(&m, out->manifest, MANIFEST_LEN, why);
	if (!e && manifest_kind(&m) == TASK_EVALUATE)
		e = err_set(why, ERR_INVALID, "its manifest is of no delta");
	return e;
}

void
spoolfile_encode(uint8_t out[SPOOLFILE_HEAD], const struct spoolfile *in)
{
	struct bytes_writer w = bytes_writer(out, SPOOLFILE_HEAD);

	bytes_put(&w, "RVS1", 4);
	bytes_put_u16(&w, VERSION);
	bytes_put_u16(&w, SPOOLFILE_HEAD);
	bytes_put_u32(&w, in->sealed ? SEALED : 0);
	bytes_put(&w, in->nonce, SPOOLFILE_NONCE);
	bytes_put(&w, in->key_id, SPOOLFILE_KEY_ID);
	bytes_put(&w, in->manifest, MANIFEST_LEN);
	bytes_put_zeros(&w, SPARE);
	bytes_put(&w, in->tag, sizeof(in->tag));
}

uint64_t
spoolfile_bytes(uint64_t payload_bytes)
{
	return SPOOLFILE_HEAD + manifest_body_bytes(payload_bytes);
}
