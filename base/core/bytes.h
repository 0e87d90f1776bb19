#ifndef BYTES_H
#define BYTES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bounded little-endian reading and writing over memory the caller owns.
 *
 * The first access past the end sets `bad`, which stays; from then on reads return zero and writes
 * do nothing, so a parser checks once at its end. Nothing is allocated.
 */
struct bytes_reader {
	const uint8_t *p;
	size_t left;
	bool bad;
};

struct bytes_writer {
	uint8_t *p;
	size_t left;
	bool bad;
};

struct bytes_reader bytes_reader(const void *data, size_t len);
uint16_t bytes_get_u16(struct bytes_reader *r);
uint32_t bytes_get_u32(struct bytes_reader *r);
uint64_t bytes_get_u64(struct bytes_reader *r);
float bytes_get_f32(struct bytes_reader *r);
void bytes_get(struct bytes_reader *r, void *out, size_t len);
/* True if the next len bytes are all zero; a non-zero byte does not set `bad`. */
bool bytes_get_zeros(struct bytes_reader *r, size_t len);

struct bytes_writer bytes_writer(void *data, size_t len);
void bytes_put_u16(struct bytes_writer *w, uint16_t v);
void bytes_put_u32(struct bytes_writer *w, uint32_t v);
void bytes_put_u64(struct bytes_writer *w, uint64_t v);
void bytes_put_f32(struct bytes_writer *w, float v);
void bytes_put(struct bytes_writer *w, const void *data, size_t len);
void bytes_put_zeros(struct bytes_writer *w, size_t len);

/* Where the item that begins with the `len` bytes of key is, or would be, among `count` items of `size` bytes each, in ascending order of
 * their first `len` bytes. */
size_t bytes_place(const void *items, size_t count, size_t size, const void *key, size_t len);
/* Returns the array `items` (from malloc, or NULL), enlarged if need be to hold count + 1 items of `size` bytes each. *room is how many
 * items the array has room for, before and after. NULL if memory is short: the old array then stays valid. */
void *bytes_grow(void *items, size_t count, size_t *room, size_t size);
/* Takes blanks and tabs from both ends of a text that ends before `end`: *at moves on, and the length of what is left is returned. */
size_t bytes_trim(const char **at, const char *end);

#endif
