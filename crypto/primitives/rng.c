#include "rng.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include "mbed.h"

enum err
rng_bytes(void *out, size_t len)
{
	unsigned char *p = out;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ERR_IO;
		p += n;
		len -= (size_t)n;
	}
	return ERR_OK;
}

int
rng_mbedtls(void *unused, unsigned char *out, size_t len)
{
	(void)unused;
	return rng_bytes(out, len) == ERR_OK ? 0 : MBEDTLS_ERR_PK_BAD_INPUT_DATA;
}
