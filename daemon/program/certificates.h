#ifndef CERTIFICATES_H
#define CERTIFICATES_H
#include <stdbool.h>

#include "err.h"

struct services;

/* The CA and the server's certificate of a running coordinator, and what replaces them on reload. Main thread only; reads files. */

/* What was loaded and differs from what is in use; a member is NULL if it does not differ. */
struct certificates {
	struct services_ca *ca;
	struct services_tls *tls;
};

/* At start: loads the server's certificate from its file, makes s->tls of it, and tells s->registry the CAs; s->ca must be set. */
ERR_MUST_USE enum err certificates_begin(struct services *s, struct why *why);
/* Loads CA and server certificate from their files, for a reload. After success certificates_use cannot fail; after an error *out is
 * empty. */
ERR_MUST_USE enum err certificates_load(
    const struct services *s, struct certificates *out, struct why *why);
/* Puts *fresh to use for new connections; live ones keep theirs, and a device whose CA is trusted no more is refused at its next request.
 * True if the CA changed. */
bool certificates_use(struct services *s, struct certificates *fresh);
/* Frees *fresh, in place of certificates_use. */
void certificates_drop(struct certificates *fresh);

#endif
