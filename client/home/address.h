#ifndef ADDRESS_H
#define ADDRESS_H
#include <stddef.h>

#include "err.h"

/*
 * Addresses of coordinators as people write them, in one form: "https://host:port" without a trailing slash, so that
 * two spellings of one coordinator compare equal. A bare "host" or "host:port" is taken as https, port 7443.
 */
#define ADDRESS_MAX 300
#define ADDRESS_PORT 7443

/* ERR_INVALID for another scheme, a path, a user name, or a host or port that cannot be. */
ERR_MUST_USE enum err address_normalise(char out[ADDRESS_MAX], const char *text, struct why *why);
/* An http or https prefix for a mirror; a path is welcome, a user name or a query is not; a trailing slash goes. */
ERR_MUST_USE enum err address_mirror(char out[ADDRESS_MAX], const char *text, struct why *why);

#endif
