#ifndef KEYS_H
#define KEYS_H
#include "services_ca.h"

struct shared;
struct store_db;

/*
 * The folder keys/ of a state directory: ca.key ca.crt server.key server.crt sign.key sign.crt task.key, and once the CA was
 * replaced ca-N.* (ca.c). Blocking; only used at start, by subcommands and on reload.
 */
/* Makes what is missing. names: DNS names and addresses for the server certificate; with any, the certificate is issued
 * anew even if there is one. *fresh says whether a CA was made. ERR_STATE if the CA is gone and the database is
 * not. */
ERR_MUST_USE enum err keys_init(
    const char *state_dir, const char *const *names, size_t count, bool *fresh, struct why *why);
/* Loads the CA, for those who follow its changes, signing key and task key. ERR_NOTFOUND: rivuletd init was not run, or a key is
 * gone; ERR_CORRUPT: a certificate is not for its key, or not of the CA. */
ERR_MUST_USE enum err keys_load(const char *state_dir, struct shared **ca, struct key **sign_key,
    uint8_t task_key[32], struct why *why);
void keys_free(struct shared **ca, struct key **sign_key);
ERR_MUST_USE enum err keys_load_task_key(const char *state_dir, uint8_t out[32], struct why *why);
/* Key and certificate, of this CA; the context stays as it is. Fails as keys_load. */
ERR_MUST_USE enum err keys_load_server(
    const char *state_dir, const struct services_ca *ca, struct services_tls *out, struct why *why);
/* Is everything there that a start loads, and of one coordinator? *out is its CA. Fails as keys_load. */
ERR_MUST_USE enum err keys_check(const char *state_dir, struct services_ca **out, struct why *why);

/* --- ca.c: the CA and its replacement. The running coordinator follows at its next reload or start. */

ERR_MUST_USE enum err keys_load_ca(
    const char *state_dir, struct services_ca **out, struct why *why);
void keys_free_ca(struct services_ca *ca); /* NULL is legal */
/* Makes the next CA. ERR_EXISTS if there is one already, or the change before was interrupted; ERR_STATE: the clock is behind. */
ERR_MUST_USE enum err keys_begin_rotation(const char *state_dir, struct why *why);
/* Issues server and signing certificates by the next CA and makes it the CA; goes on where an earlier call was interrupted.
 * ERR_STATE if there is no next one. */
ERR_MUST_USE enum err keys_finish_rotation(const char *state_dir, struct why *why);

/* --- compare.c: the CA against what is known of it elsewhere */

/* Is it the CA that [identity] ca names ("": any)? The next one, while it is replaced, and the one before, if it vouches for this one,
 * are good, too. ERR_DENIED. exported: it comes from a file, and keys/ is not to blame. */
ERR_MUST_USE enum err keys_compare_pinned(
    const struct services_ca *ca, const char *pinned, bool exported, struct why *why);
/* Is it the CA that the database was last used with, or a later generation? ERR_DENIED. Only reads. */
ERR_MUST_USE enum err keys_compare_database(
    struct store_db *db, const struct services_ca *ca, bool exported, struct why *why);
/* From now on the database knows this CA. */
ERR_MUST_USE enum err keys_compare_note(struct store_db *db, const struct services_ca *ca);

/* The same of the task key: ERR_DENIED if the database was last used with another one. Only reads. */
ERR_MUST_USE enum err keys_compare_task(struct store_db *db, const uint8_t key[32]);
ERR_MUST_USE enum err keys_compare_note_task(struct store_db *db, const uint8_t key[32]);

/* --- for keys*.c */

#define KEYS_PATH_MAX 1200
#define KEYS_FILE_MAX 4096
#define KEYS_GENERATIONS_MAX 10000
#define KEYS_DAY ((int64_t)86400)
#define KEYS_CA_LIFE (20 * 365 * KEYS_DAY)
#define KEYS_SERVER_LIFE (825 * KEYS_DAY)
#define KEYS_BACKDATE (2 * KEYS_DAY)

struct keys_authority {
	struct key *key;
	struct x509_cert cert;
};
void keys_path(const char *state_dir, const char *name, char out[KEYS_PATH_MAX]);
ERR_MUST_USE enum err keys_load_cert(
    const char *state_dir, const char *name, struct x509_cert *out, struct why *why);
ERR_MUST_USE enum err keys_save_cert(
    const char *state_dir, const char *name, const struct x509_cert *cert, struct why *why);
/* Loads a key, making it first if it is not there. */
ERR_MUST_USE enum err keys_need_key(
    const char *state_dir, const char *name, struct key **out, bool *made, struct why *why);
ERR_MUST_USE enum err keys_load_key(
    const char *state_dir, const char *name, struct key **out, struct why *why);
/* A key and its certificate that were mixed up sign what nobody can verify: ERR_CORRUPT. */
ERR_MUST_USE enum err keys_check_pair(const char *state_dir, const char *stem,
    const struct key *key, const struct x509_cert *cert, struct why *why);
/* STEM.crt is of this CA, or of the next one while that one is replaced: ERR_CORRUPT. */
ERR_MUST_USE enum err keys_check_issuer(const char *state_dir, const char *stem,
    const struct x509_cert *cert, const struct services_ca *ca, struct why *why);
/* When what this CA certifies begins: with the CA itself, so that a clock that stands ahead while it is made does no harm. ERR_STATE: the
 * clock stands before the CA, and what is made now would have ended once it is right. */
ERR_MUST_USE enum err keys_begin_under(const struct x509_cert *ca, int64_t *begin, struct why *why);
/* Issues STEM.crt for STEM.key, both made if missing, or, with `again`, anew. Sets r's key and begin. */
ERR_MUST_USE enum err keys_issue(const char *state_dir, const struct keys_authority *ca,
    const char *stem, struct x509_request *r, bool again, struct why *why);

#endif
