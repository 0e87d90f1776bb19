#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "archive.h"
#include "hex.h"

#define PIECE_BYTES ((uint64_t)8 << 20)

/* Decrypted and in pieces, so that memory stays bounded. */
static enum err
send_piece(struct exchange *x, const struct delta_file *f, uint64_t at)
{
	uint64_t left = f->body_bytes - f->leaf_bytes - at;
	size_t len = (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES);
	void *piece = malloc(len + 1);

	if (!piece)
		return ERR_NOMEM;
	enum err e = delta_file_read(f, piece, len, f->leaf_bytes + at);
	if (!e)
		exchange_bytes(x, 200, "application/octet-stream", piece, len);
	free(piece);
	return e;
}

void
api_delta_get(struct exchange *x)
{
	struct delta_file f = {.fd = -1};
	struct why why = {""};
	uint8_t task[16];
	uint64_t at = 0;

	if (!exchange_number(x, "at", INT64_MAX, &at))
		return;
	enum err e = hex_decode(task, sizeof(task), x->param[0], strlen(x->param[0]))
	    ? archive_read(x->services->archive, task, &f, &why)
	    : ERR_NOTFOUND;
	if (e == ERR_NOTFOUND) {
		exchange_problem(x, PROBLEM_NOT_FOUND, "no such delta is kept");
		return;
	}
	if (!e && at > f.body_bytes - f.leaf_bytes)
		exchange_problem(x, PROBLEM_BAD_RANGE, "the payload is shorter");
	else if (!e)
		e = send_piece(x, &f, at);
	if (e)
		exchange_failed(x, e, &why);
	delta_file_close(&f);
}
