#ifndef KEYS_H
#define KEYS_H
#include "services_ca.h"

struct shared;
struct store_db;

/*
 * The folder keys/ of a state directory: ca.key ca.crt server.key server.crt sign.key sign.crt task.key, and once the CA was
 * replaced ca-N.* (ca.c). Blocking; only used at start, by subcommands and on reload.
 */
/* Makes the files that are missing. names: DNS names and addresses for the server certificate; if there are any, the certificate is
 * issued anew even if there is one. *fresh says whether a CA was made. ERR_STATE if there is a database but no CA. */
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
/* Loads, as a trial, everything that a start loads, and checks that all files are of one coordinator. *out is the CA; the caller frees it
 * with keys_free_ca. Fails as keys_load. */
ERR_MUST_USE enum err keys_check(const char *state_dir, struct services_ca **out, struct why *why);

/* --- ca.c: the CA and its replacement. The running coordinator follows at its next reload or start. */

ERR_MUST_USE enum err keys_load_ca(
    const char *state_dir, struct services_ca **out, struct why *why);
void keys_free_ca(struct services_ca *ca); /* NULL is legal */
/* Makes the next CA. ERR_EXISTS if there is a next CA already, or the last replacement was interrupted; ERR_STATE: the clock is behind. */
ERR_MUST_USE enum err keys_begin_rotation(const char *state_dir, struct why *why);
/* Issues server and signing certificates by the next CA and makes it the CA; goes on where an earlier call was interrupted.
 * ERR_STATE if there is no next CA. */
ERR_MUST_USE enum err keys_finish_rotation(const char *state_dir, struct why *why);

/* --- compare.c: the CA against what is known of it elsewhere */

/* ERR_DENIED unless ca is what [identity] ca names ("": any): the current CA, the next one during a replacement, or the one before, if
 * it has certified the current CA's key. exported: ca comes from an exported file, and messages do not blame keys/. */
ERR_MUST_USE enum err keys_compare_pinned(
    const struct services_ca *ca, const char *pinned, bool exported, struct why *why);
/* ERR_DENIED unless ca is the CA that the database was last used with, or of a later generation. Only reads. */
ERR_MUST_USE enum err keys_compare_database(
    struct store_db *db, const struct services_ca *ca, bool exported, struct why *why);
/* From now on the database knows this CA. */
ERR_MUST_USE enum err keys_compare_note(struct store_db *db, const struct services_ca *ca);

/* ERR_DENIED if the database was last used with another task key. Only reads; keys_compare_note_task notes the key. */
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
/* Loads the key keys/NAME, and makes it first if it is not there (*made). */
ERR_MUST_USE enum err keys_need_key(
    const char *state_dir, const char *name, struct key **out, bool *made, struct why *why);
ERR_MUST_USE enum err keys_load_key(
    const char *state_dir, const char *name, struct key **out, struct why *why);
/* ERR_CORRUPT unless STEM.crt is for STEM.key: what a key signs beside another's certificate, nobody can verify. */
ERR_MUST_USE enum err keys_check_pair(const char *state_dir, const char *stem,
    const struct key *key, const struct x509_cert *cert, struct why *why);
/* ERR_CORRUPT unless STEM.crt was issued by the current CA or, during a replacement, by the next CA. */
ERR_MUST_USE enum err keys_check_issuer(const char *state_dir, const char *stem,
    const struct x509_cert *cert, const struct services_ca *ca, struct why *why);
/* When certificates by this CA begin to be valid: with the CA itself or earlier, so that a clock that is ahead when the CA is made does no
 * harm. ERR_STATE: the clock is before the CA, and a certificate made now might have ended once the clock is right. */
ERR_MUST_USE enum err keys_begin_under(const struct x509_cert *ca, int64_t *begin, struct why *why);
/* Makes STEM.key if missing, and issues STEM.crt for it if missing, or, with `again`, anew. Sets r's key and begin. */
ERR_MUST_USE enum err keys_issue(const char *state_dir, const struct keys_authority *ca,
    const char *stem, struct x509_request *r, bool again, struct why *why);

#endif
