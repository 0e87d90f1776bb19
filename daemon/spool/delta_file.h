#ifndef DELTA_FILE_H
#define DELTA_FILE_H
#include "cipher.h"
#include "spoolfile.h"

/*
 * One file that holds a delta: the head of wire/message/spoolfile.h, then the body (leaves, payload), encrypted if there is a key. Offsets
 * are of the body. Reading and writing at different places is for any thread; the file belongs to its opener.
 */

/* The keys derived from the operator's secret; the caller wipes them. */
struct delta_key {
	uint8_t body[CIPHER_KEY_LEN], head[32], id[SPOOLFILE_KEY_ID];
};
void delta_file_key(struct delta_key *out, const uint8_t secret[32]);

struct delta_file {
	int fd; /* -1: none */
	const struct delta_key *key; /* NULL: the body is not encrypted */
	uint8_t nonce[SPOOLFILE_NONCE];
	uint8_t manifest[MANIFEST_LEN];
	uint64_t leaf_bytes, body_bytes; /* as the manifest says */
	struct stop *stop; /* set by the opener: ends delta_file_verify with ERR_CLOSED; or NULL */
};

/* Writes the head into the empty file fd, which then belongs to *f, also on failure. key NULL: no encryption. */
ERR_MUST_USE enum err delta_file_create(struct delta_file *f, int fd,
    const uint8_t manifest[MANIFEST_LEN], const struct delta_key *key, struct why *why);
/* Opens path and checks the head; mode is O_RDONLY or O_RDWR. ERR_NOTFOUND; ERR_CORRUPT; ERR_DENIED if the file is encrypted with
 * another key, or key is NULL; ERR_UNSUPPORTED if a later version wrote it. Reasons name the path. */
ERR_MUST_USE enum err delta_file_open(
    struct delta_file *f, const char *path, int mode, const struct delta_key *key, struct why *why);
/* Closes the file; harmless if *f is closed. */
void delta_file_close(struct delta_file *f);
ERR_MUST_USE enum err delta_file_write(
    struct delta_file *f, const void *data, size_t len, uint64_t at);
ERR_MUST_USE enum err delta_file_read(
    const struct delta_file *f, void *data, size_t len, uint64_t at);
/* Reads len bytes of the payload at `at`, and checks the chunks that hold them against their leaves, and the leaves against the manifest's
 * root. ERR_CORRUPT says what is wrong. */
ERR_MUST_USE enum err delta_file_payload(
    const struct delta_file *f, void *data, size_t len, uint64_t at, struct why *why);
/* Reads and checks the whole body: leaves against the manifest's root, chunks against their leaves, the length. ERR_CORRUPT says what
 * is wrong, with the number of the chunk. Does not check the manifest's signature. */
ERR_MUST_USE enum err delta_file_verify(const struct delta_file *f, struct why *why);

#endif
