#ifndef MESSAGES_FIXTURE_H
#define MESSAGES_FIXTURE_H
#include <string.h>

#include "messages.h"

/* What tests of messages share. */

#define HEX32 "0123456789abcdef0123456789abcdef"
#define HEX64 HEX32 HEX32

/* Is the text an offer? */
static inline enum err
offer(const char *text, struct why *why)
{
	struct offer o;
	enum err e = messages_offer_decode(&o, text, strlen(text), why);

	messages_offer_deinit(&o);
	return e;
}

#endif
