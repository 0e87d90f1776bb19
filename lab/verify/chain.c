#include "chain.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "bytes.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "identity.h"
#include "json.h"
#include "record_json.h"
#include "sign.h"
#include "x509.h"

#define PEM_MAX 65536
#define BEGIN "-----BEGIN CERTIFICATE-----"
#define NOT_ISSUED "the signer's certificate was not issued by this CA"
#define DETAIL_LINE_MAX (RECORD_DETAIL_MAX / 3 * 4 + 1024)
#define PLACES_MAX \
	((size_t)RECORD_BODY_MAX / 64) /* a salted hash takes more than 64 bytes of a body */

/* --- files */

/* Appends the next line of a file to `line` (emptied before) without its end. ERR_NOTFOUND at the end of the file, ERR_LIMIT if
 * the line is longer than line->max. */
static enum err
read_line(FILE *f, struct buf *line)
{
	char piece[4096];

	buf_reset(line);
	while (fgets(piece, sizeof(piece), f)) {
		size_t len = strlen(piece);
		bool end = len > 0 && piece[len - 1] == '\n';
		enum err e = buf_append(line, piece, end ? len - 1 : len);
		if (e || end)
			return e;
	}
	if (ferror(f))
		return ERR_IO;
	return line->len > 0 ? ERR_OK : ERR_NOTFOUND;
}

static enum err
open_file(const char *dir, const char *name, FILE **out, struct why *why)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(why, ERR_LIMIT, "the path %.60s... is too long", dir);
	*out = fopen(path, "re");
	return *out ? ERR_OK : err_errno(why, "open %s", path);
}

static enum err
read_signer(const char *path, struct x509_cert *out, struct why *why)
{
	char *pem = NULL;
	size_t len;

	enum err e = file_read(path, PEM_MAX, &pem, &len, why);
	if (!e)
		e = x509_from_pem(out, pem, why);
	free(pem);
	return e;
}

/* The certificate of pem that issued the signer's. Words around certificates do not count. */
static enum err
find_issuer(char *pem, const struct x509_cert *signer, struct x509_cert *out, struct why *why)
{
	enum err e = ERR_OK;
	char *at = pem, *begin = strstr(pem, BEGIN);

	while (at && !e) {
		char *next = begin ? strstr(begin + 1, BEGIN) : NULL;
		if (next)
			*next = '\0';
		e = x509_from_pem(out, at, why);
		if (next)
			*next = BEGIN[0];
		if (!e && x509_verify(signer, out) == ERR_OK)
			return ERR_OK;
		at = begin = next;
	}
	return e ? e : err_set(why, ERR_CORRUPT, NOT_ISSUED);
}

/* A device's ca.pem has several for some time after its coordinator's CA was replaced. */
static enum err
read_issuer(
    const char *path, const struct x509_cert *signer, struct x509_cert *out, struct why *why)
{
	char *pem = NULL;
	size_t len;

	enum err e = file_read(path, PEM_MAX, &pem, &len, why);
	if (!e)
		e = find_issuer(pem, signer, out, why);
	free(pem);
	return e;
}

/* --- one reading */

struct reading {
	FILE *chain, *bodies, *lines;
	uint8_t spki[KEY_SPKI_LEN]; /* the signer's */
	struct buf line, body;
	struct record_detail next; /* read, but of a later entry; data NULL: none */
	bool damaged; /* the line after the last good one is: next.seq says whose it seems to be */
	struct record_detail *details;
	size_t count, room;
	uint64_t seq; /* of the entry at hand */
	struct record last;
	struct cmd_verify_chain *out;
};

static enum err
open_reading(struct reading *r, const char *dir, const char *ca_file, struct why *why)
{
	char path[PATH_MAX];
	struct x509_cert ca, signer;
	struct x509_info info;

	enum err e = identity_path(path, dir, "signer.pem", why);
	if (!e)
		e = read_signer(path, &signer, why);
	if (!e)
		e = x509_parse(&info, &signer, why);
	if (!e)
		e = identity_path(path, dir, "ca.pem", why);
	if (!e)
		e = read_issuer(ca_file ? ca_file : path, &signer, &ca, why);
	if (!e && info.is_ca)
		e = err_set(why, ERR_CORRUPT, NOT_ISSUED);
	if (e)
		return e;
	memcpy(r->spki, info.spki, sizeof(r->spki));
	hash_sha256(r->out->ca, ca.der, ca.len);
	e = open_file(dir, "chain", &r->chain, why);
	if (!e)
		e = open_file(dir, "bodies.jsonl", &r->bodies, why);
	if (!e)
		e = open_file(dir, "details.jsonl", &r->lines, why);
	return e;
}

static void
drop_details(struct reading *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->details[i].data);
	r->count = 0;
}

static void
close_reading(struct reading *r)
{
	drop_details(r);
	free(r->details);
	free(r->next.data);
	buf_deinit(&r->line);
	buf_deinit(&r->body);
	if (r->chain)
		fclose(r->chain);
	if (r->bodies)
		fclose(r->bodies);
	if (r->lines)
		fclose(r->lines);
}

/* --- the link */

/* ERR_NOTFOUND at the chain's end. */
static enum err
read_link(struct reading *r, uint8_t link[RECORD_LEN], struct why *why)
{
	size_t n = fread(link, 1, RECORD_LEN, r->chain);

	if (n == 0 && !ferror(r->chain))
		return ERR_NOTFOUND;
	if (ferror(r->chain))
		return err_set(why, ERR_IO, "reading the chain: %s", strerror(errno));
	return n == RECORD_LEN ? ERR_OK
			       : err_set(why, ERR_CORRUPT, "the file ends inside the entry");
}

static enum err
check_link(struct reading *r, const uint8_t link[RECORD_LEN], struct cmd_verify_entry *out,
    struct why *why)
{
	struct record *l = &out->link;

	if (record_decode(l, link, RECORD_LEN, why))
		return ERR_CORRUPT;
	if (l->seq != r->seq)
		return err_set(why, ERR_CORRUPT,
		    "in its place stands entry %llu: entries are missing or out of order",
		    (unsigned long long)l->seq);
	if (memcmp(l->previous, r->out->head, sizeof(l->previous)) != 0)
		return err_set(why, ERR_CORRUPT, "it does not name the hash of the entry before");
	hash_sha256(out->hash, link, RECORD_SIGNED);
	if (sign_verify(r->spki, out->hash, link + RECORD_SIGNED))
		return err_set(why, ERR_CORRUPT, "its signature is not the signer's");
	if (l->incarnation < r->last.incarnation)
		return err_set(why, ERR_CORRUPT, "its incarnation is older than that before it");
	return ERR_OK;
}

/* --- the body */

static enum err
check_body(struct reading *r, struct cmd_verify_entry *out, struct json **tree, struct why *why)
{
	uint8_t digest[HASH_LEN];

	enum err e = read_line(r->bodies, &r->body);
	if (e)
		return e == ERR_NOMEM ? e : err_set(why, ERR_CORRUPT, "its body is missing");
	hash_sha256(digest, buf_str(&r->body), r->body.len);
	if (memcmp(digest, out->link.body_hash, sizeof(digest)) != 0)
		return err_set(why, ERR_CORRUPT, "its body is not the one that was signed");
	e = json_parse(tree, buf_str(&r->body), r->body.len, why);
	if (e)
		return e == ERR_NOMEM ? e : err_set(why, ERR_CORRUPT, "its body is not JSON");
	const struct json *list = json_get(*tree, "details");
	out->body = *tree;
	const char *event = json_string(json_get(*tree, "event"));
	out->places = json_count(list);
	if (!event || (list && json_kind(list) != JSON_ARRAY))
		return err_set(why, ERR_CORRUPT, "its body names no event");
	out->event = record_event_find(event);
	return ERR_OK;
}

/* --- details */

static enum err
next_detail(struct reading *r)
{
	struct json *v = NULL;
	struct why said;

	if (r->next.data || r->damaged)
		return ERR_OK;
	enum err e = read_line(r->lines, &r->line);
	if (e == ERR_NOTFOUND || e == ERR_NOMEM)
		return e;
	if (!e)
		e = json_parse(&v, buf_str(&r->line), r->line.len, &said);
	if (!e)
		e = record_json_detail_read(&r->next, v, &said);
	json_free(v);
	if (!e || e == ERR_NOMEM)
		return e;
	unsigned long long seq = 0;
	r->damaged = true;
	if (sscanf(buf_str(&r->line), "{\"seq\":%19llu,", &seq) == 1)
		r->next.seq = seq;
	return ERR_OK;
}

static enum err
keep_detail(struct reading *r)
{
	struct record_detail *grown = bytes_grow(r->details, r->count, &r->room, sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	r->details = grown;
	r->details[r->count++] = r->next;
	r->next = (struct record_detail){.data = NULL};
	return ERR_OK;
}

/* hashes: the members of the body's list; walked along, because json_at would start over each time. */
static enum err
check_detail(const struct record_detail *d, const struct json **hash, uint64_t *at, struct why *why)
{
	uint8_t digest[HASH_LEN], want[HASH_LEN];

	while (*hash && *at < d->place) {
		*hash = json_next(*hash);
		++*at;
	}
	const char *text = json_string(*hash);
	hash_hmac(digest, d->salt, sizeof(d->salt), d->data, d->len);
	if (*at != d->place || !text || !hex_decode(want, sizeof(want), text, strlen(text)) ||
	    memcmp(digest, want, sizeof(want)) != 0)
		return err_set(why, ERR_CORRUPT, "detail %llu is not the one its body names",
		    (unsigned long long)d->place);
	return ERR_OK;
}

static enum err
check_details(struct reading *r, struct cmd_verify_entry *out, struct why *why)
{
	const struct json *hash = json_first(json_get(out->body, "details"));
	uint64_t at = 0;
	enum err e;

	drop_details(r);
	while ((e = next_detail(r)) == ERR_OK && r->next.seq <= r->seq) {
		if (r->damaged)
			return err_set(why, ERR_CORRUPT, "a line of its details is damaged");
		bool ordered = r->next.seq == r->seq && r->count < PLACES_MAX &&
		    (r->count == 0 || r->next.place > r->details[r->count - 1].place);
		if (!ordered)
			return err_set(why, ERR_CORRUPT, "a detail of entry %llu is out of order",
			    (unsigned long long)r->next.seq);
		e = check_detail(&r->next, &hash, &at, why);
		if (!e)
			e = keep_detail(r);
		if (e)
			return e;
	}
	out->details = r->details;
	out->count = r->count;
	return e == ERR_NOTFOUND ? ERR_OK : e;
}

/* --- all of it */

static void
count_entry(struct reading *r, const struct cmd_verify_entry *n)
{
	struct cmd_verify_chain *o = r->out;

	if (o->entries++ == 0)
		o->first_ms = n->link.at_ms;
	o->last_ms = n->link.at_ms;
	o->details += n->count;
	o->erased += n->places - n->count;
	memcpy(o->head, n->hash, sizeof(o->head));
	r->last = n->link;
}

/* Checks the next entry and shows it. ERR_NOTFOUND behind the last. */
static enum err
read_entry(struct reading *r,
    enum err (*fn)(void *ctx, const struct cmd_verify_entry *e, struct why *why), void *ctx,
    struct why *why)
{
	struct cmd_verify_entry n = {.event = RECORD_UNKNOWN};
	uint8_t link[RECORD_LEN];
	struct json *tree = NULL;

	r->seq++;
	enum err e = read_link(r, link, why);
	if (!e)
		e = check_link(r, link, &n, why);
	if (!e)
		e = check_body(r, &n, &tree, why);
	if (!e)
		e = check_details(r, &n, why);
	if (!e) {
		count_entry(r, &n);
		e = fn ? fn(ctx, &n, why) : ERR_OK;
	}
	json_free(tree);
	return e;
}

/* Nothing may follow what the entries account for. */
static enum err
check_end(struct reading *r, struct why *why)
{
	if (read_line(r->bodies, &r->body) != ERR_NOTFOUND)
		return err_set(why, ERR_CORRUPT, "there is a body without its entry");
	if (next_detail(r) != ERR_NOTFOUND)
		return err_set(why, ERR_CORRUPT, "there is a detail without its entry");
	return ERR_OK;
}

enum err
cmd_verify_chain_read(const char *dir, const char *ca_file,
    enum err (*fn)(void *ctx, const struct cmd_verify_entry *e, struct why *why), void *ctx,
    struct cmd_verify_chain *out, struct why *why)
{
	struct reading r = {.out = out};

	memset(out, 0, sizeof(*out));
	buf_init(&r.line, DETAIL_LINE_MAX);
	buf_init(&r.body, RECORD_BODY_MAX);
	enum err e = open_reading(&r, dir, ca_file, why);
	bool opened = !e;
	while (!e)
		e = read_entry(&r, fn, ctx, why);
	if (e == ERR_NOTFOUND && opened)
		e = check_end(&r, why);
	if (e == ERR_CORRUPT && opened)
		out->broken = r.seq;
	close_reading(&r);
	return e;
}
