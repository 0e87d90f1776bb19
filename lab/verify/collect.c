#include "collect.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "file.h"
#include "hex.h"
#include "history.h"
#include "json.h"
#include "manifest.h"
#include "session.h"

#define MODEL_MAX ((uint64_t)1 << 40)
#define PIECE_MAX (16u << 20) /* of a delta, in one answer */

/* --- the chain: three files that become visible together, the chain last */

enum file { CHAIN, BODIES, DETAILS, FILES };
static const char *const names[FILES] = {"chain", "bodies.jsonl", "details.jsonl"};

enum cert { CA, SIGNER, CERTS };
static const char *const cert_keys[CERTS] = {"ca", "signer"};
static const char *const cert_files[CERTS] = {"ca.pem", "signer.pem"};

struct fetch {
	struct cmd_admin *a;
	const char *dir;
	FILE *files[FILES];
	char *pems[CERTS];
	FILE *before; /* the chain that is there already, or NULL */
	uint64_t seq; /* of the last entry written */
	struct cmd_verify_fetched *out;
};

static enum err
path_of(const struct fetch *f, const char *name, const char *suffix, char out[PATH_MAX],
    struct why *why)
{
	int n = snprintf(out, PATH_MAX, "%s/%s%s", f->dir, name, suffix);

	return n > 0 && n < PATH_MAX
	    ? ERR_OK
	    : err_set(why, ERR_LIMIT, "the path %.60s... is too long", f->dir);
}

static enum err
open_files(struct fetch *f, struct why *why)
{
	char path[PATH_MAX];

	for (int i = 0; i < FILES; i++) {
		enum err e = path_of(f, names[i], ".part", path, why);
		if (e)
			return e;
		f->files[i] = fopen(path, "we");
		if (!f->files[i])
			return err_errno(why, "create %s", path);
	}
	enum err e = path_of(f, names[CHAIN], "", path, why);
	if (!e)
		f->before = fopen(path, "re");
	return e;
}

static enum err
put(FILE *f, const void *data, size_t len, struct why *why)
{
	return fwrite(data, 1, len, f) == len ? ERR_OK : err_errno(why, "writing the chain");
}

static enum err
put_line(FILE *f, const char *text, size_t len, struct why *why)
{
	enum err e = put(f, text, len, why);

	return e ? e : put(f, "\n", 1, why);
}

static enum err
put_details(struct fetch *f, const struct json *list, struct why *why)
{
	struct buf line;
	enum err e = ERR_OK;

	buf_init(&line, RECORD_DETAIL_MAX * 2);
	for (const struct json *d = json_first(list); d && !e; d = json_next(d)) {
		buf_reset(&line);
		e = json_print(&line, d, false);
		if (!e)
			e = put_line(f->files[DETAILS], line.data, line.len, why);
	}
	buf_deinit(&line);
	return e;
}

/* A coordinator that rewrote its past gives itself away to whoever fetched it before. */
static enum err
compare_before(struct fetch *f, const uint8_t link[RECORD_LEN], struct why *why)
{
	uint8_t old[RECORD_LEN];

	if (!f->before || fread(old, 1, sizeof(old), f->before) != sizeof(old))
		return ERR_OK;
	return memcmp(old, link, RECORD_SIGNED) == 0
	    ? ERR_OK
	    : err_set(why, ERR_CORRUPT,
		  "entry %llu is not the one fetched before: the coordinator's chain is not a "
		  "continuation of that in %s",
		  (unsigned long long)f->seq, f->dir);
}

static enum err
put_entry(struct fetch *f, const struct json *v, struct why *why)
{
	uint8_t link[RECORD_LEN];
	const struct json *details;
	const char *body;

	enum err e = record_json_entry_read(v, link, &body, &details, why);
	if (e)
		return e;
	f->seq++;
	e = compare_before(f, link, why);
	if (!e)
		e = put(f->files[CHAIN], link, sizeof(link), why);
	if (!e)
		e = put_line(f->files[BODIES], body, strlen(body), why);
	return e ? e : put_details(f, details, why);
}

/* Kept until the chain is known to go on from the one before. */
static enum err
take_pem(struct fetch *f, const struct json *page, enum cert which, struct why *why)
{
	const char *pem = json_string(json_get(page, cert_keys[which]));

	if (!pem)
		return err_set(
		    why, ERR_INVALID, "the coordinator gives no %s certificate", cert_keys[which]);
	f->pems[which] = strdup(pem);
	return f->pems[which] ? ERR_OK : ERR_NOMEM;
}

static enum err
write_pem(const struct fetch *f, enum cert which, struct why *why)
{
	char path[PATH_MAX];
	enum err e = path_of(f, cert_files[which], "", path, why);

	if (!f->pems[which])
		return ERR_STATE;
	return e ? e : file_write(path, f->pems[which], strlen(f->pems[which]), 0644, why);
}

/* One page; *more says whether there may be another. */
static enum err
fetch_page(struct fetch *f, bool *more, struct why *why)
{
	struct json *page = NULL;
	char path[64];
	uint64_t last = 0, from = f->seq;

	snprintf(path, sizeof(path), "/v1/audit?from=%llu", (unsigned long long)from + 1);
	enum err e = cmd_admin_call(f->a, "GET", path, NULL, &page, why);
	const struct json *list = json_get(page, "entries");
	if (!e && (!json_u64(json_get(page, "last"), &last) || !list))
		e = err_set(why, ERR_INVALID, "the answer is no part of an audit chain");
	if (!e && from == 0)
		e = take_pem(f, page, CA, why);
	if (!e && from == 0)
		e = take_pem(f, page, SIGNER, why);
	for (const struct json *v = json_first(list); v && !e; v = json_next(v))
		e = put_entry(f, v, why);
	*more = !e && f->seq > from && f->seq < last;
	json_free(page);
	return e;
}

static enum err
commit_files(struct fetch *f, struct why *why)
{
	char from[PATH_MAX], to[PATH_MAX];
	uint8_t byte;
	enum err e = ERR_OK;

	if (f->before && fread(&byte, 1, 1, f->before) == 1)
		return err_set(why, ERR_CORRUPT,
		    "the coordinator's chain ends with entry %llu, that in %s goes on",
		    (unsigned long long)f->seq, f->dir);
	for (int i = 0; i < CERTS && !e; i++)
		e = write_pem(f, (enum cert)i, why);
	for (int i = FILES - 1; i >= 0 && !e; i--) {
		e = path_of(f, names[i], ".part", from, why);
		if (!e)
			e = path_of(f, names[i], "", to, why);
		if (!e && fflush(f->files[i]) != 0)
			e = err_errno(why, "writing %s", from);
		if (!e)
			e = file_commit(fileno(f->files[i]), from, to, why);
	}
	return e;
}

static void
close_files(struct fetch *f, bool failed)
{
	char path[PATH_MAX];

	for (int i = 0; i < FILES; i++) {
		if (f->files[i])
			fclose(f->files[i]);
		if (failed && f->files[i] && path_of(f, names[i], ".part", path, NULL) == ERR_OK)
			unlink(path);
	}
	if (f->before)
		fclose(f->before);
	for (int i = 0; i < CERTS; i++)
		free(f->pems[i]);
}

static enum err
fetch_chain(struct fetch *f, struct why *why)
{
	bool more = true;
	enum err e = open_files(f, why);

	while (!e && more)
		e = fetch_page(f, &more, why);
	if (!e)
		e = commit_files(f, why);
	close_files(f, e);
	f->out->entries = f->seq;
	return e;
}

/* --- models and deltas */

/* A model by one GET; there already: left alone. ERR_NOTFOUND: the coordinator has none. */
static enum err
download(struct fetch *f, const char *from, const char *name, uint64_t max, struct why *why)
{
	char path[PATH_MAX], part[PATH_MAX];
	struct transport_answer answer;
	struct stat st;

	enum err e = path_of(f, name, "", path, why);
	if (!e)
		e = path_of(f, name, ".part", part, why);
	if (e || stat(path, &st) == 0)
		return e;
	struct transport_sink sink = {
	    .fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), .max = max};
	const struct session_call call = {
	    .path = from, .attempts = 3, .request = {.method = "GET", .sink = &sink}};
	if (sink.fd < 0)
		return err_errno(why, "create %s", part);
	e = session_do(f->a->session, &call, &answer, why);
	if (!e)
		e = session_refusal(&answer, NULL, why);
	transport_answer_deinit(&answer);
	if (!e)
		e = file_commit(sink.fd, part, path, why);
	close(sink.fd);
	if (e)
		unlink(part);
	return e;
}

/* Which models need not be fetched, because folding gives them. */
struct wanted {
	struct fetch *f;
	uint8_t (*made)[32];
	size_t count, room;
};

static bool
is_made(const struct wanted *w, const uint8_t id[32])
{
	for (size_t i = w->count; i-- > 0;)
		if (memcmp(w->made[i], id, 32) == 0)
			return true;
	return false;
}

static enum err
add_made(struct wanted *w, const uint8_t id[32])
{
	uint8_t(*grown)[32] = bytes_grow(w->made, w->count, &w->room, sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	w->made = grown;
	memcpy(w->made[w->count++], id, 32);
	return ERR_OK;
}

/* A delta comes in pieces. ERR_NOTFOUND: the coordinator does not keep it. */
static enum err
download_pieces(struct fetch *f, const char *task, int fd, uint64_t bytes, struct why *why)
{
	enum err e = ERR_OK;
	char from[96];

	for (uint64_t at = 0; !e && at < bytes;) {
		struct transport_answer answer;
		const struct session_call call = {.path = from,
		    .attempts = 3,
		    .request = {.method = "GET", .answer_max = PIECE_MAX}};
		snprintf(from, sizeof(from), "/v1/deltas/%s?at=%llu", task, (unsigned long long)at);
		e = session_do(f->a->session, &call, &answer, why);
		if (!e)
			e = session_refusal(&answer, NULL, why);
		if (!e && (answer.body.len == 0 || answer.body.len > bytes - at))
			e = err_set(why, ERR_CORRUPT, "delta %s has another length", task);
		if (!e)
			e = file_pwrite(fd, answer.body.data, answer.body.len, at);
		at += answer.body.len;
		transport_answer_deinit(&answer);
	}
	return e;
}

static enum err
fetch_payload(struct fetch *f, const char *task, const char *name, uint64_t bytes, struct why *why)
{
	char path[PATH_MAX], part[PATH_MAX];
	struct stat st;

	enum err e = path_of(f, name, "", path, why);
	if (!e)
		e = path_of(f, name, ".part", part, why);
	if (e || stat(path, &st) == 0)
		return e;
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(why, "create %s", part);
	e = download_pieces(f, task, fd, bytes, why);
	if (!e)
		e = file_commit(fd, part, path, why);
	close(fd);
	if (e)
		unlink(part);
	return e;
}

static enum err
fetch_delta(struct fetch *f, const struct record_detail *d, bool *there, struct why *why)
{
	char task[33], name[64];
	struct manifest m;

	*there = false;
	if (manifest_decode(&m, d->data, d->len, NULL))
		return ERR_OK;
	hex_encode(task, m.task, sizeof(m.task));
	snprintf(name, sizeof(name), "deltas/%s.delta", task);
	enum err e = fetch_payload(f, task, name, m.payload_bytes, why);
	*there = !e;
	f->out->deltas += *there;
	f->out->missing += e == ERR_NOTFOUND;
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
fetch_model(struct fetch *f, const uint8_t id[32], struct why *why)
{
	char hex[65], from[96], name[96];

	hex_encode(hex, id, 32);
	snprintf(from, sizeof(from), "/v1/models/%s", hex);
	snprintf(name, sizeof(name), "models/%s.safetensors", hex);
	enum err e = download(f, from, name, MODEL_MAX, why);
	f->out->models += !e;
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

static enum err
fetch_round(void *ctx, const struct cmd_verify_entry *entry, struct why *why)
{
	struct wanted *w = ctx;
	struct cmd_verify_round r;
	bool all = true, there;

	enum err e = cmd_verify_history_round(&r, entry, why);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	all = !e && r.count == r.reports;
	for (size_t i = 0; !e && i < r.count; i++) {
		e = fetch_delta(w->f, &r.manifests[i], &there, why);
		all = all && there;
	}
	if (e || !all)
		return e;
	if (!is_made(w, r.base)) {
		e = fetch_model(w->f, r.base, why);
		if (!e)
			e = add_made(w, r.base);
	}
	return e ? e : add_made(w, r.model);
}

static enum err
fetch_files(struct fetch *f, struct why *why)
{
	struct cmd_verify_chain chain = {.entries = 0};
	struct why said = {""};
	struct wanted w = {.f = f};
	char path[PATH_MAX];

	enum err e = path_of(f, "models", "", path, why);
	if (!e)
		e = file_mkdirs(path, 0755, why);
	if (!e)
		e = path_of(f, "deltas", "", path, why);
	if (!e)
		e = file_mkdirs(path, 0700, why);
	if (e)
		return e;
	e = cmd_verify_chain_read(f->dir, NULL, fetch_round, &w, &chain, &said);
	free(w.made);
	const char *text = said.text[0] ? said.text : err_name(e);
	if (e == ERR_CORRUPT && chain.broken)
		return err_set(why, e, "entry %llu: %s", (unsigned long long)chain.broken, text);
	return e ? err_set(why, e, "%s", text) : ERR_OK;
}

enum err
cmd_verify_fetch(struct cmd_admin *a, const char *dir, bool deltas, struct cmd_verify_fetched *out,
    struct why *why)
{
	struct fetch f = {.a = a, .dir = dir, .out = out};

	*out = (struct cmd_verify_fetched){.entries = 0};
	enum err e = file_mkdirs(dir, 0700, why);
	if (!e)
		e = fetch_chain(&f, why);
	return !e && deltas ? fetch_files(&f, why) : e;
}
