#include "block.h"

enum err
codec_block_walk(uint64_t at, uint64_t end, size_t whole, const uint8_t *data, size_t len,
    codec_block_take take, void *context)
{
	enum err e = ERR_OK;

	if (at > end || len > end - at)
		return ERR_INVALID;
	while (len > 0 && !e) {
		size_t inside = (size_t)(at % whole);
		uint64_t begin = at - inside;
		size_t block_len = end - begin < whole ? (size_t)(end - begin) : whole;
		size_t n = len < block_len - inside ? len : block_len - inside;
		e = take(context, inside, block_len, data, n);
		at += n;
		data += n;
		len -= n;
	}
	return e;
}

void
codec_block_range(uint64_t end, size_t whole, size_t elements, uint64_t first, size_t count,
    uint64_t *at, size_t *len)
{
	uint64_t to = (first + count + elements - 1) / elements * whole;

	*at = first / elements * whole;
	*len = count == 0 ? 0 : (size_t)((to < end ? to : end) - *at);
}
