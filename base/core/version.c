#include "version.h"

/* VERSION_BUILD is the Makefile's, for this file alone. */
_Static_assert(sizeof(VERSION_BUILD) <= 32, "an offer's agent has no more room");

const char *
version_text(void)
{
	return VERSION_BUILD;
}
