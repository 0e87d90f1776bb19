#include "delta_resume.h"
#include "fault.h"
#include "problem.h"
#include "reseal.h"
#include "stop.h"
#include "verified.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Checks the file up to the first bytes that are bad or cannot be read. *cut: there are bytes behind the last good ones. */
static enum err
hash_again(
    struct spool *s, struct spool_part *part, struct delta_body *body, bool *cut, struct why *why)
{
	const struct delta_watermark known = spool_verified_mark(s, part);
	uint8_t *piece = malloc(MANIFEST_CHUNK);
	enum err e = ERR_OK;
	struct stat st = {.st_size = 0};

	if (!piece)
		return err_set(why, ERR_NOMEM, "no memory");
	uint64_t have = fstat(part->file.fd, &st) == 0 && st.st_size > SPOOLFILE_HEAD
	    ? (uint64_t)st.st_size - SPOOLFILE_HEAD
	    : 0;
	if (have > body->bytes)
		have = body->bytes;
	uint64_t leaves = body->leaf_bytes < have ? body->leaf_bytes : have;
	const uint64_t seen = delta_body_seen(body);
	const bool skips = known.at > seen && known.at <= have;
	while (!e && body->now.at < have) {
		uint64_t at = body->now.at, left = (at < leaves ? leaves : have) - at;
		size_t n = left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK;
		if (delta_file_read(&part->file, piece, n, at) || delta_body_take(body, piece, n))
			break;
		if (skips && body->now.at == seen)
			delta_body_skip(body, &known);
		/* On the way to the mark it stays where it is: a newer transfer would begin at less. */
		bool behind = skips && body->good.at < known.at;
		if (stop_asked(part->file.stop))
			e = err_set(why, ERR_CLOSED, "the coordinator stops");
		else if (!behind && !spool_verified_until(s, part, &body->good))
			e = err_set(why, ERR_AGAIN, "a newer transfer of this task has begun");
	}
	free(piece);
	delta_body_rewind(body);
	*cut = SPOOLFILE_HEAD + body->now.at != (uint64_t)st.st_size;
	return e;
}

enum err
delta_resume(struct spool *s, const uint8_t task[16], const uint8_t device[32],
    struct spool_part *part, struct manifest *m, struct delta_body *body, struct why *why)
{
	enum err e = spool_resume(s, task, device, part, why);
	bool cut = true;

	if (e)
		return e;
	e = manifest_decode(m, part->file.manifest, MANIFEST_LEN, why);
	if (!e && !codec_find(m->codec))
		e = err_set(why, ERR_NOTFOUND, "the part's codec is not handled");
	if (!e && delta_body_init(body, m))
		e = err_set(why, ERR_NOMEM, "no memory");
	if (!e)
		e = hash_again(s, part, body, &cut, why);
	/* Cutting nothing off would count as a change, too. */
	if (!e && cut) {
		e = part->file.key ? spool_reseal(s, part, body->now.at, why)
				   : spool_cut(s, part, body->now.at);
		if (!e)
			(void)spool_verified_until(s, part, &body->good);
	}
	FAULT("delta.resumed");
	if (e)
		spool_leave(s, part);
	return e;
}
