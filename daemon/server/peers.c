#include "peers.h"

#include <arpa/inet.h>
#include <string.h>

/* key: the address, of IPv6 the first 64 bits; all texts that are no address share one key. */
static void
key_of(uint8_t key[TALLY_KEY], const char *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memset(key, 0, TALLY_KEY);
	if (inet_pton(AF_INET6, address, key) == 1) {
		/* Who has an IPv6 address has 2^64 of them. */
		if (memcmp(key, mapped, sizeof(mapped)) != 0)
			memset(key + 8, 0, 8);
		return;
	}
	if (inet_pton(AF_INET, address, key + 12) == 1)
		memcpy(key, mapped, sizeof(mapped));
}

enum tally_room
peers_enter(struct tally *p, const char *address, const struct tally_limits *limits)
{
	uint8_t key[TALLY_KEY];

	key_of(key, address);
	return tally_enter(p, key, limits);
}

void
peers_leave(struct tally *p, const char *address)
{
	uint8_t key[TALLY_KEY];

	key_of(key, address);
	tally_leave(p, key);
}
