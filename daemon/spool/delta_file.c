#include "delta_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "merkle.h"
#include "rng.h"
#include "stop.h"

#define PIECE 16384 /* bytes encrypted at a time */

void
delta_file_key(struct delta_key *out, const uint8_t secret[32])
{
	static const char body[] = "rivulet spool body", head[] = "rivulet spool head",
			  id[] = "rivulet spool key";
	uint8_t name[HASH_LEN];

	hash_hmac(out->body, secret, 32, body, sizeof(body) - 1);
	hash_hmac(out->head, secret, 32, head, sizeof(head) - 1);
	hash_hmac(name, secret, 32, id, sizeof(id) - 1);
	memcpy(out->id, name, sizeof(out->id));
}

/* The tag of a head: with a key, nobody without the key can replace the head; without a key, the tag only shows that the head is whole. */
static void
make_tag(uint8_t out[HASH_LEN], const uint8_t *head, const struct delta_key *key)
{
	if (key)
		hash_hmac(out, key->head, sizeof(key->head), head, SPOOLFILE_TAGGED);
	else
		hash_sha256(out, head, SPOOLFILE_TAGGED);
}

static void
take_manifest(struct delta_file *f, const uint8_t raw[MANIFEST_LEN], const struct manifest *m)
{
	memcpy(f->manifest, raw, MANIFEST_LEN);
	f->leaf_bytes = manifest_chunks(m->payload_bytes) * HASH_LEN;
	f->body_bytes = manifest_body_bytes(m->payload_bytes);
}

enum err
delta_file_create(struct delta_file *f, int fd, const uint8_t manifest[MANIFEST_LEN],
    const struct delta_key *key, struct why *why)
{
	struct spoolfile s = {.sealed = key != NULL};
	uint8_t head[SPOOLFILE_HEAD];
	struct manifest m;

	*f = (struct delta_file){.fd = fd, .key = key};
	enum err e = manifest_decode(&m, manifest, MANIFEST_LEN, why);
	if (e)
		return e;
	take_manifest(f, manifest, &m);
	memcpy(s.manifest, manifest, MANIFEST_LEN);
	if (key) {
		if (f->body_bytes > CIPHER_STREAM_MAX)
			return err_set(why, ERR_LIMIT, "the delta is too large to be encrypted");
		e = rng_bytes(f->nonce, sizeof(f->nonce));
		if (e)
			return err_set(why, e, "no random numbers");
		memcpy(s.nonce, f->nonce, sizeof(s.nonce));
		memcpy(s.key_id, key->id, sizeof(s.key_id));
	}
	spoolfile_encode(head, &s);
	make_tag(s.tag, head, key);
	spoolfile_encode(head, &s);
	e = file_pwrite(fd, head, sizeof(head), 0);
	return e ? err_errno(why, "write the head of a delta") : ERR_OK;
}

static enum err
wrong_key(const char *path, const struct spoolfile *s, const struct delta_key *key, struct why *why)
{
	char theirs[2 * SPOOLFILE_KEY_ID + 1], ours[2 * SPOOLFILE_KEY_ID + 1] = "none";

	hex_encode(theirs, s->key_id, SPOOLFILE_KEY_ID);
	if (key)
		hex_encode(ours, key->id, SPOOLFILE_KEY_ID);
	return err_set(why, ERR_DENIED, "%s is encrypted with the key %s; the key given is %s",
	    path, theirs, ours);
}

static enum err
read_head(struct delta_file *f, const char *path, const struct delta_key *key, struct why *why)
{
	uint8_t head[SPOOLFILE_HEAD], tag[HASH_LEN];
	struct spoolfile s;
	struct manifest m;
	struct why inner = {""};

	enum err e = file_pread(f->fd, head, sizeof(head), 0);
	/* A disk that cannot read now says nothing about what is on it. */
	if (e)
		return err_set(why, e, "%s: %s", path,
		    e == ERR_CORRUPT ? "has no whole head" : "cannot be read");
	e = spoolfile_decode(&s, head, sizeof(head), &inner);
	if (e)
		return err_set(
		    why, e == ERR_UNSUPPORTED ? e : ERR_CORRUPT, "%s: %.120s", path, inner.text);
	if (s.sealed && (!key || !hash_equal(s.key_id, key->id, SPOOLFILE_KEY_ID)))
		return wrong_key(path, &s, key, why);
	f->key = s.sealed ? key : NULL;
	make_tag(tag, head, f->key);
	if (!hash_equal(tag, s.tag, HASH_LEN) ||
	    manifest_decode(&m, s.manifest, MANIFEST_LEN, NULL))
		return err_set(why, ERR_CORRUPT, "%s: its head does not check", path);
	memcpy(f->nonce, s.nonce, sizeof(f->nonce));
	take_manifest(f, s.manifest, &m);
	return ERR_OK;
}

enum err
delta_file_open(
    struct delta_file *f, const char *path, int mode, const struct delta_key *key, struct why *why)
{
	*f = (struct delta_file){.fd = open(path, mode | O_CLOEXEC | O_NOFOLLOW)};
	if (f->fd < 0)
		return err_errno(why, "open %s", path);
	enum err e = read_head(f, path, key, why);
	if (e)
		delta_file_close(f);
	return e;
}

void
delta_file_close(struct delta_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

enum err
delta_file_write(struct delta_file *f, const void *data, size_t len, uint64_t at)
{
	uint8_t piece[PIECE];
	enum err e = ERR_OK;

	if (at > f->body_bytes || len > f->body_bytes - at)
		return ERR_LIMIT;
	if (!f->key)
		return file_pwrite(f->fd, data, len, SPOOLFILE_HEAD + at);
	for (size_t done = 0; done < len && !e; done += PIECE) {
		size_t n = len - done < PIECE ? len - done : PIECE;
		memcpy(piece, (const uint8_t *)data + done, n);
		e = cipher_xor(f->key->body, f->nonce, at + done, piece, n);
		if (!e)
			e = file_pwrite(f->fd, piece, n, SPOOLFILE_HEAD + at + done);
	}
	return e;
}

enum err
delta_file_read(const struct delta_file *f, void *data, size_t len, uint64_t at)
{
	if (at > f->body_bytes || len > f->body_bytes - at)
		return ERR_CORRUPT;
	enum err e = file_pread(f->fd, data, len, SPOOLFILE_HEAD + at);
	return e || !f->key ? e : cipher_xor(f->key->body, f->nonce, at, data, len);
}

/* --- what is read, checked */

struct proof {
	uint8_t *leaves, *chunk;
};

static void
proof_end(struct proof *p)
{
	free(p->leaves);
	free(p->chunk);
}

static enum err
read_leaves(const struct delta_file *f, const struct proof *p, struct why *why)
{
	uint8_t root[HASH_LEN];
	struct manifest m;

	enum err e = manifest_decode(&m, f->manifest, MANIFEST_LEN, why);
	if (!e)
		e = delta_file_read(f, p->leaves, (size_t)f->leaf_bytes, 0);
	if (e)
		return err_set(why, e, "its leaves cannot be read: %s", err_name(e));
	merkle_root(root, p->leaves, (size_t)(f->leaf_bytes / HASH_LEN));
	return hash_equal(root, m.root, HASH_LEN)
	    ? ERR_OK
	    : err_set(why, ERR_CORRUPT, "its leaves do not make the signed root");
}

/* Reads the file's leaves and checks them against the manifest's root. The caller calls proof_end in any case. */
static enum err
proof_begin(struct proof *p, const struct delta_file *f, struct why *why)
{
	struct stat st;

	*p = (struct proof){NULL, NULL};
	if (fstat(f->fd, &st) != 0)
		return err_errno(why, "stat of a delta");
	/* Also what bounds the allocation. */
	if ((uint64_t)st.st_size != SPOOLFILE_HEAD + f->body_bytes)
		return err_set(why, ERR_CORRUPT, "it has %llu bytes, not %llu",
		    (unsigned long long)st.st_size,
		    (unsigned long long)(SPOOLFILE_HEAD + f->body_bytes));
	p->leaves = malloc((size_t)f->leaf_bytes);
	p->chunk = malloc(MANIFEST_CHUNK);
	return p->leaves && p->chunk ? read_leaves(f, p, why)
				     : err_set(why, ERR_NOMEM, "no memory");
}

/* Reads chunk i, of *len bytes, and checks it against its leaf. */
static enum err
read_chunk(
    const struct delta_file *f, const struct proof *p, uint64_t i, size_t *len, struct why *why)
{
	uint64_t n = f->leaf_bytes / HASH_LEN;
	uint64_t left = f->body_bytes - f->leaf_bytes - i * MANIFEST_CHUNK;
	uint8_t hash[HASH_LEN];

	*len = left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK;
	enum err e = delta_file_read(f, p->chunk, *len, f->leaf_bytes + i * MANIFEST_CHUNK);
	if (e)
		return err_set(why, e, "chunk %llu of %llu cannot be read: %s",
		    (unsigned long long)i, (unsigned long long)n, err_name(e));
	merkle_leaf(hash, p->chunk, *len);
	return hash_equal(hash, p->leaves + i * HASH_LEN, HASH_LEN)
	    ? ERR_OK
	    : err_set(why, ERR_CORRUPT, "chunk %llu of %llu is damaged", (unsigned long long)i,
		  (unsigned long long)n);
}

enum err
delta_file_verify(const struct delta_file *f, struct why *why)
{
	struct proof p;
	size_t len;

	enum err e = proof_begin(&p, f, why);
	for (uint64_t i = 0; !e && i < f->leaf_bytes / HASH_LEN; i++) {
		e = read_chunk(f, &p, i, &len, why);
		if (!e && stop_asked(f->stop))
			e = err_set(why, ERR_CLOSED, "the coordinator stops");
	}
	proof_end(&p);
	return e;
}

enum err
delta_file_payload(const struct delta_file *f, void *data, size_t len, uint64_t at, struct why *why)
{
	const uint64_t payload = f->body_bytes - f->leaf_bytes;
	struct proof p;
	size_t n = 0;

	if (at > payload || len > payload - at)
		return err_set(why, ERR_CORRUPT, "the payload is shorter");
	enum err e = proof_begin(&p, f, why);
	for (size_t done = 0; !e && done < len;) {
		size_t skip = (size_t)((at + done) % MANIFEST_CHUNK);
		e = read_chunk(f, &p, (at + done) / MANIFEST_CHUNK, &n, why);
		n = n - skip < len - done ? n - skip : len - done;
		if (!e)
			memcpy((uint8_t *)data + done, p.chunk + skip, n);
		done += n;
	}
	proof_end(&p);
	return e;
}
