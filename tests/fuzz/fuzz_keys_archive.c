/* An archive of keys. What is taken is small, has a coordinator's names, lies inside the input and, packed again, reads the same. */
#include "fuzz.h"
#include "keys_archive.h"

/* The same files, in the same order. */
static void
compare(const struct buf *again, const uint8_t *data, size_t len)
{
	struct ustar_reader a = {data, len}, b = {(const uint8_t *)again->data, again->len};
	struct ustar_file x, y;
	struct why why;

	while (keys_archive_next(&a, &x, &why) == ERR_OK) {
		require(keys_archive_next(&b, &y, &why) == ERR_OK);
		require(strcmp(x.name, y.name) == 0 && x.len == y.len && x.mode == y.mode);
		require(x.len == 0 || memcmp(x.data, y.data, x.len) == 0);
	}
	require(keys_archive_next(&b, &y, &why) == ERR_NOTFOUND);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ustar_reader r = {data, len};
	struct ustar_file file;
	struct buf again;
	struct why why;
	enum err e;

	buf_init(&again, len + 2 * USTAR_BLOCK);
	while ((e = keys_archive_next(&r, &file, &why)) == ERR_OK) {
		const uint8_t *at = file.data;
		require(at >= data && file.len <= KEYS_FILE_MAX && at + file.len <= data + len);
		require(!strchr(file.name, '/') && ustar_put(&again, &file) == ERR_OK);
	}
	if (e == ERR_NOTFOUND) {
		require(ustar_end(&again) == ERR_OK);
		compare(&again, data, len);
	}
	buf_deinit(&again);
	return 0;
}
