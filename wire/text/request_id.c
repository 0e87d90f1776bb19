#include "request_id.h"

#include <string.h>

bool
request_id_valid(const char *text)
{
	const size_t len = strnlen(text, REQUEST_ID_MAX);

	return len > 0 && len < REQUEST_ID_MAX &&
	    strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == len;
}
