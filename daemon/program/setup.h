#ifndef SETUP_H
#define SETUP_H
#include "err.h"
#include "services.h"

/* Starts all parts of the coordinator in order, and stops them in the reverse order. */
struct setup;

/* Makes all parts; config is copied. answers: NULL, or what keeps answers (answers.h), which lives longer than the setup. Until setup_start
 * only the store's thread runs. */
struct answers;
ERR_MUST_USE enum err setup_new(
    struct setup **out, const struct config *config, struct answers *answers, struct why *why);
/* Listens and opens rounds. */
ERR_MUST_USE enum err setup_start(struct setup *s, struct why *why);
const struct services *setup_services(const struct setup *s);
/* Puts to use the settings of a new configuration that can change at run time, and server certificate and CA as their files are now. */
ERR_MUST_USE enum err setup_reload(struct setup *s, const struct config *config, struct why *why);
/* Warns if the server certificate ends soon. */
void setup_warn(const struct setup *s);
/* Lets running requests finish, keeps open rounds for the next start, frees everything. NULL is legal. */
void setup_free(struct setup *s);

#endif
