#include "delta_resume.h"
#include "fault.h"

#include <stdlib.h>
#include <sys/stat.h>

/* As much of the file as is good; what cannot be read is as bad as what does not match. */
static enum err
hash_again(const struct spool_part *part, struct delta_body *body, struct why *why)
{
	uint8_t *piece = malloc(MANIFEST_CHUNK);
	struct stat st;

	if (!piece)
		return err_set(why, ERR_NOMEM, "no memory");
	uint64_t have = fstat(part->file.fd, &st) == 0 && st.st_size > SPOOLFILE_HEAD
	    ? (uint64_t)st.st_size - SPOOLFILE_HEAD
	    : 0;
	if (have > body->bytes)
		have = body->bytes;
	while (body->now.at < have) {
		uint64_t at = body->now.at, left = have - at;
		size_t n = left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK;
		if (delta_file_read(&part->file, piece, n, at) != ERR_OK ||
		    delta_body_take(body, piece, n))
			break;
	}
	free(piece);
	delta_body_rewind(body);
	return ERR_OK;
}

enum err
delta_resume(struct spool *s, const uint8_t task[16], const uint8_t device[32],
    struct spool_part *part, struct manifest *m, struct delta_body *body, struct why *why)
{
	enum err e = spool_resume(s, task, device, part, why);

	if (e)
		return e;
	e = manifest_decode(m, part->file.manifest, MANIFEST_LEN, why);
	if (e == ERR_OK && !codec_find(m->codec))
		e = err_set(why, ERR_NOTFOUND, "the part's codec is not handled");
	if (e == ERR_OK && delta_body_init(body, m) != ERR_OK)
		e = err_set(why, ERR_NOMEM, "no memory");
	if (e == ERR_OK)
		e = hash_again(part, body, why);
	if (e == ERR_OK)
		e = spool_cut(s, part, body->now.at);
	FAULT("delta.resumed");
	if (e)
		spool_leave(s, part);
	return e;
}
