#ifndef SETUP_H
#define SETUP_H
#include "err.h"
#include "services.h"

/* Brings the whole coordinator up in order, and down in the other. */
struct setup;

/* config is copied. Until setup_start nothing runs but the store's thread. */
ERR_MUST_USE enum err setup_new(struct setup **out, const struct config *config, struct why *why);
/* Listens and opens rounds. */
ERR_MUST_USE enum err setup_start(struct setup *s, struct why *why);
const struct services *setup_services(const struct setup *s);
/* Takes what can change while running from a new configuration, server certificate and CA from their files. */
ERR_MUST_USE enum err setup_reload(struct setup *s, const struct config *config, struct why *why);
/* Warns if the server certificate ends soon. */
void setup_warn(const struct setup *s);
/* Lets running requests finish, keeps open rounds for the next start, frees everything. NULL is legal. */
void setup_free(struct setup *s);

#endif
