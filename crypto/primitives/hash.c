#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stop.h"

#define HASH_BLOCK 64 /* SHA-256's block, which HMAC pads its key to */
#define READ_BLOCK ((size_t)256 * 1024)
#define PIECE ((uint64_t)1 << 20) /* hashed between two looks at the time */

static ssize_t
read_block(int fd, void *out, size_t len, off_t at)
{
	ssize_t n;

	do
		n = pread(fd, out, len, at);
	while (n < 0 && errno == EINTR);
	return n;
}

enum err
hash_bytes(uint8_t out[HASH_LEN], const void *data, uint64_t len, struct stop *stop)
{
	struct hash *h = hash_new();
	enum err e = h ? ERR_OK : ERR_NOMEM;

	if (!e)
		hash_start(h);
	for (uint64_t at = 0; at < len && !e; at += PIECE) {
		hash_update(h, (const uint8_t *)data + at,
		    len - at < PIECE ? (size_t)(len - at) : (size_t)PIECE);
		e = stop_asked(stop) ? ERR_CLOSED : ERR_OK;
	}
	if (!e)
		hash_finish(h, out);
	hash_free(h);
	return e;
}

enum err
hash_file_until(int fd, uint8_t out[HASH_LEN], struct stop *stop)
{
	enum err e = ERR_NOMEM;
	struct stat st;
	struct hash *h = hash_new();
	uint8_t *block = malloc(READ_BLOCK);
	off_t at = 0;
	ssize_t n = 1;

	if (!h || !block)
		goto out;
	e = ERR_INVALID;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		goto out;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	hash_start(h);
	while (!stop_asked(stop) && (n = read_block(fd, block, READ_BLOCK, at)) > 0) {
		hash_update(h, block, (size_t)n);
		at += n;
	}
	e = n < 0 ? ERR_IO : n > 0 ? ERR_CLOSED : ERR_OK;
	if (!e)
		hash_finish(h, out);
out:
	free(block);
	hash_free(h);
	return e;
}

enum err
hash_file(int fd, uint8_t out[HASH_LEN])
{
	return hash_file_until(fd, out, NULL);
}

/* One of HMAC's two hashes: SHA-256((key xor pad) || data). */
static void
keyed(struct hash *h, const uint8_t key[HASH_BLOCK], uint8_t pad, const void *data, size_t len,
    uint8_t out[HASH_LEN])
{
	uint8_t block[HASH_BLOCK];

	for (size_t i = 0; i < HASH_BLOCK; i++)
		block[i] = (uint8_t)(key[i] ^ pad);
	hash_start(h);
	hash_update(h, block, sizeof(block));
	hash_update(h, data, len);
	hash_finish(h, out);
	hash_wipe(block, sizeof(block));
}

void
hash_hmac(uint8_t out[HASH_LEN], const void *key, size_t key_len, const void *data, size_t data_len)
{
	uint8_t block[HASH_BLOCK] = {0};
	uint8_t inner[HASH_LEN];
	struct hash *h = hash_new();

	if (!h)
		abort();
	if (key_len > HASH_BLOCK)
		hash_sha256(block, key, key_len);
	else if (key_len > 0)
		memcpy(block, key, key_len);
	keyed(h, block, 0x36, data, data_len, inner);
	keyed(h, block, 0x5c, inner, sizeof(inner), out);
	hash_wipe(block, sizeof(block));
	hash_wipe(inner, sizeof(inner));
	hash_free(h);
}

bool
hash_equal(const void *a, const void *b, size_t len)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t differ = 0;

	for (size_t i = 0; i < len; i++)
		differ = (uint8_t)(differ | (x[i] ^ y[i]));
	return differ == 0;
}

void
hash_wipe(void *data, size_t len)
{
	explicit_bzero(data, len);
}
