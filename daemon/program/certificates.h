#ifndef CERTIFICATES_H
#define CERTIFICATES_H
#include <stdbool.h>

#include "err.h"

struct services;

/* The CA and the server's certificate of a running coordinator, and what replaces them on reload. Main thread only; reads files. */

/* What differs from what is in use; NULL: nothing does. */
struct certificates {
	struct services_ca *ca;
	struct services_tls *tls;
};

/* Shows the certificate as it stands in its file from now on; s->ca and s->registry must be there. */
ERR_MUST_USE enum err certificates_begin(struct services *s, struct why *why);
/* After success certificates_use cannot fail. After an error nothing is left in *out. */
ERR_MUST_USE enum err certificates_load(
    const struct services *s, struct certificates *out, struct why *why);
/* New connections go by them from now on; live ones keep what they were made with, and who came by a CA that went is refused at the
 * next request. True if the CA changed. */
bool certificates_use(struct services *s, struct certificates *fresh);
/* Instead of certificates_use. */
void certificates_drop(struct certificates *fresh);

#endif
