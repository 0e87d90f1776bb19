#include "choice.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hash.h"

double
choice_percent(const uint8_t job[16], const uint8_t device[32])
{
	uint8_t text[48], digest[HASH_LEN];
	uint64_t head = 0;

	memcpy(text, job, 16);
	memcpy(text + 16, device, 32);
	hash_sha256(digest, text, sizeof(text));
	for (int i = 0; i < 8; i++)
		head = head << 8 | digest[i];
	return (double)(head >> 11) * 0x1p-53 * 100;
}

static int
compare_tickets(const void *a, const void *b)
{
	return memcmp(a, b, HASH_LEN);
}

void
choice_ticket(struct choice_ticket *out, const uint8_t device[32], uint64_t seed, uint64_t round)
{
	uint8_t text[48];
	struct bytes_writer w = bytes_writer(text, sizeof(text));

	bytes_put_u64(&w, seed);
	bytes_put_u64(&w, round);
	bytes_put(&w, device, 32);
	hash_sha256(out->number, text, sizeof(text));
	memcpy(out->device, device, 32);
}

enum err
choice_draw(uint8_t (*devices)[32], size_t count, uint64_t seed, uint64_t round)
{
	struct choice_ticket *tickets = calloc(count ? count : 1, sizeof(*tickets));

	if (!tickets)
		return ERR_NOMEM;
	for (size_t i = 0; i < count; i++)
		choice_ticket(&tickets[i], devices[i], seed, round);
	qsort(tickets, count, sizeof(*tickets), compare_tickets);
	for (size_t i = 0; i < count; i++)
		memcpy(devices[i], tickets[i].device, 32);
	free(tickets);
	return ERR_OK;
}
