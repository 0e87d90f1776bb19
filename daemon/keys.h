#ifndef KEYS_H
#define KEYS_H
#include "services.h"

/*
 * The folder keys/ of a state directory: ca.key ca.crt server.key server.crt sign.key sign.crt task.key.
 * Blocking; only used at start, by init and on reload.
 */
struct keys_server {
	struct key *key;
	struct x509_cert cert;
};

/* Makes what is missing. names: DNS names and addresses for the server certificate; with any, the certificate is issued
 * anew even if there is one. *fresh says whether a CA was made. ERR_STATE if the CA is gone and the database is
 * not. */
ERR_MUST_USE enum err keys_init(
    const char *state_dir, const char *const *names, size_t count, bool *fresh, struct why *why);
/* Loads CA and signing key into s and the task key. ERR_NOTFOUND: rivuletd init was not run, or a key is
 * gone; ERR_CORRUPT: a certificate is not for its key. */
ERR_MUST_USE enum err keys_load(
    const char *state_dir, struct services *s, uint8_t task_key[32], struct why *why);
void keys_free(struct services *s);
ERR_MUST_USE enum err keys_load_server(
    const char *state_dir, struct keys_server *out, struct why *why);

#endif
