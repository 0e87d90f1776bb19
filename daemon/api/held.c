#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "archive.h"
#include "delta_body.h"
#include "delta_resume.h"
#include "hex.h"
#include "log.h"
#include "registry.h"
#include "services.h"
#include "spent.h"
#include "store.h"

/* Reading deltas that the coordinator holds: how much of an upload is there; a kept delta of an ended round. */

#define PIECE_BYTES ((uint64_t)8 << 20)
#define BYTES_PER_ROW (16u << 10) /* read and decrypted: what they cost of what a row does */

struct lookup {
	struct manifest m;
	struct store_accept row;
};

static enum err
find_row(struct store_db *db, void *arg, struct why *why)
{
	struct lookup *l = arg;

	(void)why;
	return store_accept_get(db, l->m.job, l->m.round, l->m.device, &l->row);
}

/* Is there a row for the delta of this task? A file without a row was left by a failed commit. */
static bool
was_accepted(struct exchange *x, const uint8_t task[16], uint64_t *bytes)
{
	struct delta_file file;
	struct lookup l;

	if (spool_read(x->services->spool, task, NULL, &file, NULL))
		return false;
	*bytes = file.body_bytes;
	bool found = manifest_decode(&l.m, file.manifest, MANIFEST_LEN, NULL) == ERR_OK &&
	    memcmp(l.m.device, x->who.device, sizeof(l.m.device)) == 0 &&
	    store_read(x->services->store, find_row, &l, NULL) == ERR_OK;
	delta_file_close(&file);
	if (!found)
		return false;
	free(l.row.report);
	return memcmp(l.row.task, task, sizeof(l.row.task)) == 0;
}

static void
answer(struct exchange *x, uint64_t offset, bool complete)
{
	exchange_status(x, 204);
	exchange_header(x, "Upload-Offset", "%llu", (unsigned long long)offset);
	exchange_header(x, "Upload-Complete", "?%d", complete);
}

void
api_delta_head(struct exchange *x)
{
	struct spool *spool = x->services->spool;
	struct delta_body body = {.m = NULL};
	struct spool_part part;
	struct manifest m;
	struct why why = {""};
	uint64_t bytes = 0;
	uint8_t task[16];

	registry_touch(x->services->registry, x->who.device, NULL, NULL);
	if (!hex_decode(task, sizeof(task), x->param[0], strlen(x->param[0]))) {
		exchange_problem(x, PROBLEM_NOT_FOUND, "that is no task");
		return;
	}
	enum err e = delta_resume(spool, task, x->who.device, &part, &m, &body, &why);
	if (!e) {
		answer(x, body.now.at, false);
		if (*part.began)
			exchange_header(x, "Rivulet-Began", "%s", part.began);
		spool_leave(spool, &part);
	} else if (e != ERR_NOTFOUND) {
		exchange_problem(
		    x, PROBLEM_UNAVAILABLE, "%s", why.text[0] ? why.text : err_name(e));
	} else if (was_accepted(x, task, &bytes)) {
		answer(x, bytes, true);
	} else {
		exchange_problem(x, PROBLEM_NOT_FOUND, "nothing of this task is here");
	}
	delta_body_deinit(&body);
}

void
api_delta_began(struct exchange *x, struct spool_part *part)
{
	char device[17];

	if (x->request.method != VERB_PATCH) {
		spool_began(x->services->spool, part, x->id);
		return;
	}
	if (!*part->began && request_id_valid(x->request.began))
		spool_began(x->services->spool, part, x->request.began);
	hex_encode(device, x->who.device, 8);
	if (!spent_log(x->services->spent, x->services->config, x->who.device, 0))
		return;
	log_event(LOG_LEVEL_INFO, "delta.resumed", LOG_S("task", x->param[0]),
	    LOG_S("device", device), LOG_U("offset", x->request.offset), LOG_S("request", x->id),
	    LOG_S("began", part->began));
}

/* --- kept ones */

/* Reads the delta, decrypted, in pieces, so that memory stays bounded, and checked, for the disk may have changed it. */
static enum err
send_piece(struct exchange *x, const struct delta_file *f, uint64_t at, struct why *why)
{
	uint64_t left = f->body_bytes - f->leaf_bytes - at;
	size_t len = (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES);
	void *piece = malloc(len + 1);

	if (!piece)
		return ERR_NOMEM;
	enum err e = delta_file_payload(f, piece, len, at, why);
	exchange_looked(x, len / BYTES_PER_ROW);
	if (!e)
		exchange_bytes(x, 200, "application/octet-stream", piece, len);
	free(piece);
	return e;
}

/* Answers for a kept delta that cannot be read, which is no failure of the coordinator. A damaged delta is answered as a missing one: its
 * round cannot be folded again, and nothing else needs the delta. */
static void
refuse_kept(struct exchange *x, enum err e, const struct why *why)
{
	const bool unread = e == ERR_IO || e == ERR_DENIED;

	if (e != ERR_CORRUPT && !unread) {
		exchange_failed(x, e, why);
		return;
	}
	log_limited(
	    LOG_LEVEL_WARN, "kept.damaged", LOG_S("task", x->param[0]), LOG_S("why", why->text));
	exchange_problem(x, unread ? PROBLEM_UNAVAILABLE : PROBLEM_NOT_FOUND,
	    "the kept delta %s: %s", unread ? "cannot be read now" : "is damaged", why->text);
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
		e = send_piece(x, &f, at, &why);
	if (e)
		refuse_kept(x, e, &why);
	delta_file_close(&f);
}
