#ifndef ENDPOINT_H
#define ENDPOINT_H
#include "config.h"

/* Splits ADDRESS:PORT, [IPV6-ADDRESS]:PORT or PORT; false for anything else. The address is numeric, so that starting needs no
 * resolver. */
bool endpoint_parse(const char *value, struct config_listen *out);

#endif
