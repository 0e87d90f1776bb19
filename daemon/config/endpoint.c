#include "endpoint.h"

#include <arpa/inet.h>
#include <string.h>

#include "num.h"

bool
endpoint_parse(const char *value, struct config_listen *out)
{
	const char *colon = strrchr(value, ':');
	size_t len = colon ? (size_t)(colon - value) : 0;
	bool v6 = value[0] == '[';
	unsigned char address[16];
	uint64_t port;

	memset(out, 0, sizeof(*out));
	if (!num_u64(colon ? colon + 1 : value, UINT16_MAX, &port))
		return false;
	out->port = (uint16_t)port;
	if (!colon)
		return true;
	if (v6 && (len < 3 || value[len - 1] != ']'))
		return false;
	len -= v6 ? 2 : 0;
	if (len == 0 || len >= sizeof(out->host))
		return false;
	memcpy(out->host, value + v6, len);
	return inet_pton(v6 ? AF_INET6 : AF_INET, out->host, address) == 1;
}
