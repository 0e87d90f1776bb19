#include "ustar.h"

#include <stdbool.h>
#include <string.h>

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char linkname[100], magic[8], uname[32], gname[32], major[8], minor[8], prefix[155],
	    pad[12];
};
_Static_assert(sizeof(struct header) == USTAR_BLOCK, "a header is one block");

static const char magic[8] = "ustar\0"
			     "00";
static const char blank[8] = "        ";
static const uint8_t zeros[USTAR_BLOCK];

/* Bytes that fill the last block of so many. */
static size_t
padding(size_t len)
{
	return (USTAR_BLOCK - len % USTAR_BLOCK) % USTAR_BLOCK;
}

/* --- a header's fields */

/* The sum of a header's bytes as if its own field were blank. */
static uint64_t
sum_of(const struct header *h)
{
	const uint8_t *p = (const uint8_t *)h;
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	for (size_t i = 0; i < sizeof(h->checksum); i++)
		sum += (uint64_t)blank[i] - (uint8_t)h->checksum[i];
	return sum;
}

/* Octal digits; the field's last byte stays zero. */
static void
put_octal(char *field, size_t room, uint64_t value)
{
	for (size_t i = room - 1; i-- > 0; value /= 8)
		field[i] = (char)('0' + value % 8);
}

/* Digits, then zeros or blanks to the end. A field has at most 12 bytes: no overflow. */
static bool
get_octal(const char *field, size_t room, uint64_t *out)
{
	size_t i = 0;

	*out = 0;
	for (; i < room && field[i] >= '0' && field[i] <= '7'; i++)
		*out = *out * 8 + (uint64_t)(field[i] - '0');
	bool digits = i > 0;
	while (i < room && (field[i] == '\0' || field[i] == ' '))
		i++;
	return digits && i == room;
}

/* Six digits, a zero, a blank. */
static void
put_checksum(const struct header *h, char out[8])
{
	memset(out, 0, 7);
	put_octal(out, 7, sum_of(h));
	out[7] = ' ';
}

static bool
is_name(const char *name)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strnlen(name, USTAR_NAME_MAX + 1);

	return len > 0 && len <= USTAR_NAME_MAX && name[0] != '.' && strspn(name, letters) == len;
}

/* --- writing */

enum err
ustar_put(struct buf *out, const struct ustar_file *file)
{
	struct header h = {.type = '0'};

	memcpy(h.name, file->name, strnlen(file->name, USTAR_NAME_MAX));
	memcpy(h.magic, magic, sizeof(magic));
	put_octal(h.mode, sizeof(h.mode), file->mode);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), file->len);
	put_octal(h.mtime, sizeof(h.mtime), 0);
	put_checksum(&h, h.checksum);
	enum err e = buf_append(out, &h, sizeof(h));
	if (!e)
		e = buf_append(out, file->data, file->len);
	return e ? e : buf_append(out, zeros, padding(file->len));
}

enum err
ustar_end(struct buf *out)
{
	enum err e = buf_append(out, zeros, USTAR_BLOCK);

	return e ? e : buf_append(out, zeros, USTAR_BLOCK);
}

/* --- reading */

static bool
is_zero(const uint8_t *p, size_t len)
{
	while (len > 0 && *p == 0)
		p++, len--;
	return len == 0;
}

static enum err
read_header(const struct header *h, struct ustar_file *out, uint64_t *len, struct why *why)
{
	char checksum[8];
	uint64_t mode;

	put_checksum(h, checksum);
	if (memcmp(h->magic, magic, sizeof(magic)) != 0 ||
	    memcmp(h->checksum, checksum, sizeof(checksum)) != 0)
		return err_set(why, ERR_INVALID, "it is no tar archive (ustar), or damaged");
	if (!is_name(h->name) || h->prefix[0])
		return err_set(why, ERR_INVALID, "it has a name that is none for a plain file");
	memset(out->name, 0, sizeof(out->name));
	memcpy(out->name, h->name, strlen(h->name));
	if (h->type != '0' || !get_octal(h->size, sizeof(h->size), len) ||
	    !get_octal(h->mode, sizeof(h->mode), &mode) || mode > 0777)
		return err_set(why, ERR_INVALID, "%s in it is no plain file", out->name);
	out->mode = (unsigned)mode;
	return ERR_OK;
}

enum err
ustar_next(struct ustar_reader *r, struct ustar_file *out, struct why *why)
{
	uint64_t len = 0;

	if (r->len < 2 * USTAR_BLOCK)
		return err_set(why, ERR_INVALID, "it is cut short");
	if (is_zero(r->data, USTAR_BLOCK))
		return is_zero(r->data, r->len)
		    ? ERR_NOTFOUND
		    : err_set(why, ERR_INVALID, "something follows its end");
	enum err e = read_header((const struct header *)r->data, out, &len, why);
	if (e)
		return e;
	r->data += USTAR_BLOCK;
	r->len -= USTAR_BLOCK;
	if (len > r->len || padding((size_t)len) > r->len - (size_t)len)
		return err_set(why, ERR_INVALID, "it is cut short");
	out->data = r->data;
	out->len = (size_t)len;
	r->data += out->len + padding(out->len);
	r->len -= out->len + padding(out->len);
	return ERR_OK;
}
