/* The head of a balancer. A whole head is the same whatever follows it, its beginnings are beginnings, and the peer is an address. */
#include <arpa/inet.h>

#include "fuzz.h"
#include "proxy.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char peer[64], again[64];
	uint8_t address[16];
	size_t used, used_again;

	enum proxy_result r = proxy_parse(data, len, &used, peer);
	if (r != PROXY_BAD && (used > len || used > PROXY_HEAD_MAX))
		abort();
	if (r == PROXY_MORE && used != len)
		abort();
	if (r != PROXY_DONE)
		return 0;
	if (peer[0] && inet_pton(AF_INET, peer, address) != 1 &&
	    inet_pton(AF_INET6, peer, address) != 1)
		abort();
	if (proxy_parse(data, used, &used_again, again) != PROXY_DONE || used_again != used ||
	    strcmp(peer, again) != 0)
		abort();
	if (proxy_parse(data, used - 1, &used_again, again) != PROXY_MORE)
		abort();
	return 0;
}
